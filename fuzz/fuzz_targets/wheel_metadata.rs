//! Any bytes as METADATA and as `direct_url.json`, markers and requirements included.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use shakedown_stack::python::{Direct, MarkerValues, Metadata};

fuzz_target!(|bytes: &[u8]| {
    for requirement in Metadata::parse(bytes).requires {
        let _ = requirement.allows("2.9.1+cu130");
        if let Some(marker) = &requirement.marker {
            let _ = marker.holds(&MarkerValues::default(), &BTreeSet::new());
        }
    }
    if let Some(direct) = Direct::parse(bytes) {
        let _ = direct.directory();
    }
});
