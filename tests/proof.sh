#!/usr/bin/env bash
# Runs the tests that generate their cases at length, each round with other seeds, and prints their counts:
#
#     tests/proof.sh [--minutes N] [--seed N] [--part NAME]
#
# Every part gets the same share of the minutes (60 by default), and at least one round. A round that fails is printed
# with the command that repeats it, and the other parts continue; the exit status is then 1. Files are made in memory
# (/dev/shm) if possible. README.md, next to this script, has the figures of a long run.
set -euo pipefail
shopt -s nullglob
cd "$(dirname "$0")/.."

minutes=60 seed=$((RANDOM * 32768 + RANDOM)) only=
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) minutes=$2; shift 2 ;;
        --seed) seed=$2; shift 2 ;;
        --part) only=$2; shift 2 ;;
        *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
    esac
done

# A part: its name, the cases of a round (MEDFEED_CASES; `share`: the seconds that the part has), how many rounds run at
# a time (those of a part that mostly waits, several), and the tests.
parts="
model      500   1 properties::feeds properties::resync properties::replicas::a_replica properties::soundness::the_check
hidden     200   1 properties::soundness::hidden
served     10    8 properties::served
licenses   100   1 process::pull_licenses::histories
kills      10    2 process::killed process::replica_kills process::promotion::a_promotion_that_is_killed_at_any process::upgrades::a_killed process::pull_kills process::shell_example::a_killed
publishers 4     1 process::publishing_doubles process::races
timeouts   1     1 process::publishing_watched::a_publisher_is_unready process::publishing_faults::a_request_without
takeovers  30    1 process::promotion process::revocation
instants   12    1 process::replica_instants
power      1000  1 power::
disks      100   2 process::full_disks
inputs     2000  1 properties::inputs properties::workbooks properties::replicas::changed_bytes properties::lists
damage     20    2 process::damage:: process::damaged_commands
buckets    1     2 process::replica_faults
soak       share 1 process::soak
relay      150   1 process::pull_network process::replica_network process::publishing_network::a_fault
"

scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/medfeed-proof.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/files"

# Optimized code is built longer, and then goes through more cases.
export CARGO_PROFILE_DEV_OPT_LEVEL=${CARGO_PROFILE_DEV_OPT_LEVEL:-2}
# The allocator is that of the released program.
cargo test --quiet --features jemalloc --test medfeed --no-run
program=$(cargo test --features jemalloc --test medfeed --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"kind":\["test"\].*"executable":"\([^"]*\)".*/\1/p')

count=$(echo "$parts" | awk -v only="$only" 'NF && (only == "" || $1 == only)' | wc -l)
[ "$count" -gt 0 ] || { echo "there is no part $only" >&2; exit 2; }
share=$((minutes * 60 / count))
failed=0
printf '%-10s %7s %7s  %s\n' part rounds seconds counted
# Runs one round with a seed. Its counts go to a file, and so does the seed if the round fails.
run_round() {
    local round=$1 log="$scratch/log-$1"
    # shellcheck disable=SC2086 # the filters are several words
    if env "${environment[@]}" TMPDIR="$scratch/files" MEDFEED_SEED=$round MEDFEED_CASES=$cases timeout --kill-after 10 $((share + 1800)) \
        "$program" --nocapture --test-threads 2 $filters > "$log" 2>&1; then
        grep -ho 'counted [0-9]* .*' "$log" > "$scratch/counted-$round" || true
        grep -h '^soak: ' "$log" > "$scratch/measured-$round" || true
    else
        cp "$log" "target/proof-$name-$round.log"
        echo "$round" > "$scratch/failed-$round"
    fi
    rm "$log"
}

while read -r name cases at_once filters; do
    [ -n "$name" ] && { [ -z "$only" ] || [ "$only" = "$name" ]; } || continue
    begun=$SECONDS rounds=0
    rm -f "$scratch"/counted-* "$scratch"/measured-* "$scratch"/failed-*
    [ "$cases" != share ] || cases=$((share > 5 ? share - 5 : 5))
    # The soak judges the memory that programs hold, not the memory that the allocator keeps for later. So the allocator
    # keeps nothing, unless the variable is set (to an empty value for the settings of the released program).
    environment=()
    [ "$name" != soak ] ||
        environment=(_RJEM_MALLOC_CONF="${_RJEM_MALLOC_CONF-narenas:1,tcache:false,dirty_decay_ms:0,muzzy_decay_ms:0}")
    while [ $rounds = 0 ] || [ $((SECONDS - begun)) -lt $share ]; do
        for _ in $(seq "$at_once"); do
            run_round $((seed + rounds * 1000003)) &
            rounds=$((rounds + 1))
        done
        wait
    done
    for round in $(cat /dev/null "$scratch"/failed-*); do
        failed=1
        echo "FAILED: see target/proof-$name-$round.log; again by: MEDFEED_SEED=$round MEDFEED_CASES=$cases cargo test --test medfeed -- $filters"
    done
    counted=$(awk '{ number = $2; $1 = $2 = ""; sums[$0] += number }
        END { for (what in sums) printf "%s%d%s", sep, sums[what], what, sep = ", " }' /dev/null "$scratch"/counted-* | sed 's/  */ /g')
    printf '%-10s %7s %7s  %s\n' "$name" $rounds $((SECONDS - begun)) "$counted"
    cat /dev/null "$scratch"/measured-*
done <<< "$parts"
echo "seed $seed"
exit $failed
