//! Any bytes as a RECORD.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shakedown_stack::files::Record;

fuzz_target!(|bytes: &[u8]| {
    let record = Record::parse(bytes);
    assert!(record.entries.iter().all(|e| !e.path.is_empty()));
});
