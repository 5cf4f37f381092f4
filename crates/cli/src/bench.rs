//! `shakedown bench`.

use shakedown_model::Exit;
use shakedown_verbs::{Control, bench};

use crate::args::{BenchArgs, Format};
use crate::exit::CliError;
use crate::interrupt;
use crate::output::{self, Output};
use crate::progress::Talk;

pub(crate) fn run(args: BenchArgs, output: &Output) -> Result<Exit, CliError> {
    let request = args.into_request()?;
    let control = Control::new(interrupt::flag()?);
    let talk = Talk::new(output);
    let outcome = bench::run(&request, &control, &talk);
    talk.finish();
    let outcome = outcome?;
    let text = match output.format {
        Format::Json => serde_json::to_string_pretty(&outcome.document)? + "\n",
        Format::Human => {
            let bundle = outcome.bundle.display().to_string();
            shakedown_report::run_summary(&outcome.document, Some(&bundle), &output.style)
        }
    };
    output::data(&text)?;
    Ok(outcome.exit)
}
