//! Foreign bytes never panic, and what is read does not depend on how it arrives.

use std::io::{self, Read};

use proptest::prelude::*;
use shakedown_diagnose::{Evidence, Facts, mask};

use crate::DIAGNOSER;

/// Gives its bytes a few at a time.
struct Dribble {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Dribble {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.step).min(self.bytes.len() - self.at);
        into[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Pieces of logs, put together in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"Traceback (most recent call last):\n".to_vec()),
        Just(b"  File \"/x.py\", line 1, in f\n".to_vec()),
        Just(b"The above exception was the direct cause of the following exception:\n\n".to_vec()),
        Just(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n".to_vec()),
        Just(
            b"[2026-05-01 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
                .to_vec()
        ),
        Just(b"(EngineCore_DP0 pid=7) ERROR 10-10 10:10:50 [core.py:708] ValueError: x\n".to_vec()),
        Just(b"[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m')\n".to_vec()),
        Just(b"\x1b[31merror\x1b[0m \r 10%|# | 1/2\r 20%|##| 2/2\r\n".to_vec()),
        Just(b"curl: (7) Failed to connect to 127.0.0.1 port 8000: Connection refused\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..80),
        "\\PC{0,60}\n".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_log_is_judged(bytes in pieces(), step in 1_usize..4000) {
        let whole = DIAGNOSER.diagnose(Evidence::new().with_log("a.log", bytes.clone())).unwrap();
        let dribbled = DIAGNOSER
            .diagnose(Evidence::new().with_stream("a.log", Box::new(Dribble { bytes: bytes.clone(), at: 0, step })))
            .unwrap();
        prop_assert_eq!(&whole, &dribbled);
        prop_assert!(!whole.findings.is_empty());
        // What is quoted stands there.
        let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
        for finding in &whole.findings {
            for evidence in &finding.finding.evidence {
                prop_assert!(evidence.line.is_none_or(|line| line >= 1 && line <= lines));
            }
        }
    }

    #[test]
    fn any_facts_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400), key in "[a-z/._]{1,12}", value in "\\PC{0,80}") {
        let _ = Facts::from_json(&bytes);
        let document = serde_json::json!({ key: value.clone(), "argv": [value.clone(), { "x": value }] });
        let facts = Facts::from_value(&document).unwrap();
        let again = Facts::from_value(&facts.to_json()).unwrap();
        prop_assert_eq!(facts.all().len(), again.all().len());
        DIAGNOSER.diagnose(Evidence::new().with_facts(facts)).unwrap();
    }

    #[test]
    fn masking_is_stable(text in "\\PC{0,200}") {
        let once = mask(&text).into_owned();
        let twice = mask(&once).into_owned();
        prop_assert_eq!(once, twice);
    }
}
