//! How far the client's stamps are from the practice server's own.

use anyhow::Result;

use super::figures::{Check, median, spread};
use super::practice::Practice;
use super::{Context, pooled_median};

/// Largest error of one stream's stamps, median over the runs, in milliseconds.
const P50_LIMIT: f64 = 0.1;
/// The same at the 99th percentile.
const P99_LIMIT: f64 = 0.3;
/// Largest difference of TTFT p99 from the server's own, in percent.
const TTFT_LIMIT: f64 = 2.0;
/// Largest difference of a median gap from the one that was set, in percent.
const GAP_LIMIT: f64 = 1.0;

/// Measures accuracy.
pub(super) fn run(context: &Context) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    one_stream(context, &mut checks)?;
    many_tokens_a_chunk(context, &mut checks)?;
    for streams in [64, 256] {
        many_streams(context, streams, &mut checks)?;
    }
    Ok(checks)
}

/// One stream, TTFT 50 ms, ITL 10 ms, 128 tokens.
fn one_stream(context: &Context, checks: &mut Vec<Check>) -> Result<()> {
    let practice = Practice::start(context, &["--ttft", "50ms", "--itl", "10ms"])?;
    let [mut p50, mut p99, mut late, mut early] = [const { Vec::new() }; 4];
    for _ in 0..context.rounds {
        let args = [
            "-c",
            "1",
            "--requests",
            "2",
            "--max-tokens",
            "128",
            "--ignore-eos",
        ];
        let run = context.bench(&practice.url, &args)?;
        p50.push(run.figure("/truth/p50_ms")?);
        p99.push(run.figure("/truth/p99_ms")?);
        late.push(run.figure("/truth/server_late_p99_ms")?);
        early.push(run.figure("/truth/early")?);
    }
    println!("  one stream, error against the server's stamps, ms");
    println!("    p50          {}", spread(&p50));
    println!("    p99          {}", spread(&p99));
    println!("    server late  {}  (p99, its own)", spread(&late));
    checks.push(Check::at_most(
        "error p50, one stream",
        median(&p50),
        P50_LIMIT,
        "ms",
    ));
    checks.push(Check::at_most(
        "error p99, one stream",
        median(&p99),
        P99_LIMIT,
        "ms",
    ));
    checks.push(Check::at_most(
        "stamps before the server's, in all runs",
        early.iter().sum(),
        0.0,
        "chunks",
    ));
    Ok(())
}

/// A chunk of 3 tokens every 30 ms: ICL 30 ms, ITL 10 ms.
fn many_tokens_a_chunk(context: &Context, checks: &mut Vec<Check>) -> Result<()> {
    let options = ["--ttft", "50ms", "--itl", "30ms", "--tokens-per-chunk", "3"];
    let practice = Practice::start(context, &options)?;
    let [mut icl, mut itl] = [const { Vec::new() }; 2];
    for _ in 0..context.rounds {
        let args = ["-c", "1", "--requests", "2", "--max-tokens", "96", "--ignore-eos"];
        let run = context.bench(&practice.url, &args)?;
        icl.push(pooled_median(&run.document, "icl_ms")?);
        itl.push(pooled_median(&run.document, "itl_ms")?);
    }
    println!("  3 tokens a chunk every 30 ms, medians, ms");
    println!("    ICL          {}", spread(&icl));
    println!("    ITL          {}", spread(&itl));
    checks.push(Check::at_most(
        "ICL off 30 ms",
        percent_off(median(&icl), 30.0),
        GAP_LIMIT,
        "%",
    ));
    checks.push(Check::at_most(
        "ITL off 10 ms",
        percent_off(median(&itl), 10.0),
        GAP_LIMIT,
        "%",
    ));
    Ok(())
}

/// Many streams that start at once.
fn many_streams(context: &Context, streams: u32, checks: &mut Vec<Check>) -> Result<()> {
    let practice = Practice::start(context, &["--ttft", "200ms", "--itl", "20ms"])?;
    let count = streams.to_string();
    let [mut ours, mut server, mut off] = [const { Vec::new() }; 3];
    for _ in 0..context.rounds {
        let args = [
            "-c",
            &count,
            "--requests",
            &count,
            "--max-tokens",
            "64",
            "--ignore-eos",
        ];
        let run = context.bench(&practice.url, &args)?;
        let seen = run.figure("/truth/ttft_p99_ms")?;
        let truth = run.figure("/truth/server_ttft_p99_ms")?;
        ours.push(seen);
        server.push(truth);
        off.push(percent_off(seen, truth));
    }
    println!("  {streams} streams at once, TTFT p99, ms");
    println!("    shakedown    {}", spread(&ours));
    println!("    server       {}", spread(&server));
    checks.push(Check::at_most(
        format!("TTFT p99 off the server's, {streams} streams"),
        median(&off),
        TTFT_LIMIT,
        "%",
    ));
    Ok(())
}

/// How far `value` is from `truth`, in percent of it.
fn percent_off(value: f64, truth: f64) -> f64 {
    (value / truth - 1.0).abs() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_the_truth_count() {
        assert!((percent_off(102.0, 100.0) - 2.0).abs() < 1e-9);
        assert!((percent_off(98.0, 100.0) - 2.0).abs() < 1e-9);
        assert!(percent_off(f64::NAN, 100.0).is_nan());
    }
}
