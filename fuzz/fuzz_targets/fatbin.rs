//! Any bytes as an ELF file with GPU code.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use shakedown_stack::fatbin::GpuCode;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::tempfile() else {
        return;
    };
    if file.write_all(bytes).is_ok()
        && let Ok(code) = GpuCode::read(file)
    {
        let _ = code.coverage(120);
    }
});
