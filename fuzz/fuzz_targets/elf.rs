//! Any bytes as an ELF file: headers, undefined symbols, lookups, relocations.
#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use shakedown_stack::elf::{Asked, Image};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::tempfile() else {
        return;
    };
    if file.write_all(bytes).is_err() {
        return;
    }
    if let Ok(image) = Image::read(file) {
        for undefined in image.undefined().iter().take(64) {
            let _ = image.defines(&Asked::new(undefined));
        }
        let _ = (image.relocated(), image.version_needs().len());
    }
});
