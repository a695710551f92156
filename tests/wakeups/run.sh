#!/usr/bin/env bash
# Tries interleavings of requests that wait with what wakes them:
#
#     tests/wakeups/run.sh [--cases N] [FILTER...]
#
# Each test tries so many (2,000 by default).
set -euo pipefail
cd "$(dirname "$0")"

if [ "${1:-}" = --cases ]; then
    export MEDFEED_CASES=$2
    shift 2
fi
exec cargo test --target-dir ../../target/wakeups -- "$@"
