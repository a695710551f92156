#!/usr/bin/env bash
# Runs coverage-guided input (libFuzzer) against the code that reads bytes from outside, one target after the other:
#
#     fuzz/run.sh [--minutes N] [--seed N] [--target NAME]
#
# Each target runs for the same number of minutes (10 by default). It needs the stable toolchain, Linux on x86-64, and a C++
# compiler. The inputs that reached new code stay in fuzz/corpus, so that the next run continues from there. An input that
# fails is kept in fuzz/artifacts and printed with the command that repeats it. The other targets go on, and the exit
# status is then 1.
set -euo pipefail
cd "$(dirname "$0")"

minutes=10 seed=$((RANDOM * 32768 + RANDOM)) only=
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) minutes=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        --target) only=$2; shift 2 ;;
        *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
    esac
done

# A target: its name, and the longest input in bytes.
targets="
requests  2000
texts     4000
workbooks 12000
pages     4000
exports   3000
objects   4000
"

# The most memory of a target in MiB, and the most time of one input in seconds.
memory=2048
seconds_per_input=20

selected=$(echo "$targets" | awk -v only="$only" 'NF && (only == "" || $1 == only)')
[ -n "$selected" ] || { echo "there is no target $only" >&2; exit 2; }

# With `--target`, cargo tells build scripts and macros from the program, and instrument.sh leaves them alone.
machine=x86_64-unknown-linux-gnu
RUSTC_WRAPPER=$PWD/instrument.sh cargo build --release --quiet --locked ${only:+--bin "$only"} --target $machine --target-dir target

scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/medfeed-fuzz.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch/files
mkdir -p "$TMPDIR" artifacts

failed=0
printf '%-10s %7s %10s %7s %7s %7s  %s\n' target seconds executions edges corpus 'MiB' result
while read -r name length; do
    program=target/$machine/release/$name
    mkdir -p "corpus/$name" "$scratch/$name"
    MEDFEED_FUZZ_SEEDS=$scratch/$name "$program" 2> "$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
    begun=$SECONDS result=passed
    "$program" "corpus/$name" "$scratch/$name" -max_total_time=$((minutes * 60 + 5)) -seed="$seed" -max_len="$length" \
        -len_control=0 -dict="$scratch/$name.words" -rss_limit_mb=$memory -timeout=$seconds_per_input -print_final_stats=1 \
        -artifact_prefix="artifacts/$name-" > "$scratch/log" 2>&1 < /dev/null || result=FAILED
    [ $result = passed ] || failed=1
    edges=$(grep -o 'cov: [0-9]*' "$scratch/log" | tail -n 1 | cut -d ' ' -f 2 || true)
    inputs=$(grep -o 'corp: [0-9]*' "$scratch/log" | tail -n 1 | cut -d ' ' -f 2 || true)
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log" | tail -n 1)
    peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$scratch/log" | tail -n 1)
    printf '%-10s %7s %10s %7s %7s %7s  %s\n' "$name" $((SECONDS - begun)) "${count:-?}" "${edges:-?}" "${inputs:-?}" \
        "${peak:-?}" $result
    if [ $result = FAILED ]; then
        cp "$scratch/log" "artifacts/$name.log"
        grep -E 'panicked|^ERROR|ERROR: libFuzzer|Test unit written' -A 2 "artifacts/$name.log" | head -n 20 || true
        echo "the log is fuzz/artifacts/$name.log; again by: fuzz/target/$machine/release/$name fuzz/artifacts/FILE"
    fi
    rm -rf "$TMPDIR" && mkdir "$TMPDIR"
done <<< "$selected"
echo "seed $seed"
exit $failed
