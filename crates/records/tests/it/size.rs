//! What a token costs in `requests.jsonl`.

use std::fs;

use shakedown_records::{Bundle, Store};

use crate::sample;

/// Bytes a token of the file after `requests` answers, read back to be sure that nothing was left out.
fn bytes_a_token(tokens: usize, itl_us: u32, requests: u64) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let writer = Store::at(dir.path()).create(&sample::document("size")).unwrap();
    let records: Vec<_> = (0..requests)
        .map(|number| sample::answer(number, sample::steady_gaps(tokens, itl_us, number + 1)))
        .collect();
    for record in &records {
        writer.append(record).unwrap();
    }
    assert_eq!(
        Bundle::open(writer.dir())
            .unwrap()
            .read_requests()
            .unwrap()
            .records,
        records
    );
    let size = fs::metadata(writer.dir().join("requests.jsonl")).unwrap().len();
    size as f64 / (tokens as f64 * requests as f64)
}

#[test]
fn a_steady_stream_takes_at_most_eight_bytes_a_token() {
    for itl_us in [10_000, 31_800, 99_000] {
        for tokens in [128, 256, 2048] {
            let bytes = bytes_a_token(tokens, itl_us, 40);
            println!("{tokens} tokens, ITL {itl_us} us: {bytes:.2} bytes a token");
            assert!(
                bytes <= 8.0,
                "{tokens} tokens, ITL {itl_us} us: {bytes:.2} bytes a token"
            );
        }
    }
}
