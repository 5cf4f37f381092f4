//! The binary `shakedown`: see `app` for what it does.

mod app;
mod args;
mod bench;
mod exit;
mod interrupt;
mod output;
mod practice;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(app::main().code())
}
