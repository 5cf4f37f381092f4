//! `cargo xtask`: work on the project itself.
fn main() {}
