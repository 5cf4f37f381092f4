//! Any bytes as a `requests.jsonl`: at most one record or error a line, and nothing worse.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    let mut requests = shakedown_records::read_requests(bytes, Path::new("requests.jsonl"));
    let mut answers = 0;
    for request in requests.by_ref() {
        answers += 1;
        if let Ok(record) = request {
            // What a line holds cannot be more than its bytes.
            assert!(record.gaps_us.len() <= bytes.len());
        }
    }
    assert!(answers + usize::from(requests.torn()) <= lines);
});
