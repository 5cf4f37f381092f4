#!/bin/sh
# Runs one fuzz target on the stable toolchain: fuzz/run.sh NAME SECONDS [libFuzzer options]
# New inputs are kept in fuzz/corpus/NAME, findings in fuzz/artifacts/NAME. Exit status 0 is "nothing found".
set -eu
cd "$(dirname "$0")"
if [ $# -lt 2 ]; then
    echo "usage: fuzz/run.sh NAME SECONDS [libFuzzer options]" >&2
    echo "names: $(ls fuzz_targets | sed 's/\.rs$//' | tr '\n' ' ')" >&2
    exit 2
fi
name=$1
seconds=$2
shift 2
host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# With --target the flags do not reach build scripts and macros.
RUSTFLAGS="$flags" cargo build --release -j "${FUZZ_JOBS:-1}" --target "$host" --bin "$name"
mkdir -p "corpus/$name" "artifacts/$name"
seeds=
[ -d "seeds/$name" ] && seeds="seeds/$name"
exec "target/$host/release/$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="artifacts/$name/" "$@" "corpus/$name" $seeds
