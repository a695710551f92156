#!/bin/bash
# What an upgrade promises, shown at length with an old release's program. It prints its seeds, and at the end what it counted.
#
#   tests/upgrade.sh OLD_BINARY                  # 200 records, 5 histories
#   tests/upgrade.sh OLD_BINARY RECORDS HISTORIES
#
# MEDFEED_BIN names another new program, MEDFEED_SEED the first history's seed. With ONLY_OLD=1 nothing is upgraded: the old
# program serves again, which shows that this test finds no difference where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
old="$(realpath "${1:?usage: tests/upgrade.sh OLD_BINARY [RECORDS] [HISTORIES]}")"
if [ -z "${MEDFEED_BIN:-}" ] && [ -z "${ONLY_OLD:-}" ]; then
    cargo build --release --bin medfeed
fi
export MEDFEED_BIN="${MEDFEED_BIN:-$PWD/target/release/medfeed}"
exec python3 tests/upgrade.py "$old" "${2:-200}" "${3:-5}"
