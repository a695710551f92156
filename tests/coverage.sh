#!/usr/bin/env bash
# Prints which part of the lines of each module of src the tests run:
#
#     tests/coverage.sh [FILTER...]
#
# Only this package is instrumented, so crates are not built again. Lines of unit tests do not count. What a killed program
# has run counts too, because counters are kept in mapped files. `llvm-profdata` and `llvm-cov` must be of the version that
# `rustc -vV` names; LLVM_BIN is their folder, if they are not in the PATH. `--files` lists files instead of modules.
set -euo pipefail
cd "$(dirname "$0")/.."

by=modules
[ "${1:-}" != --files ] || { by=files; shift; }
tools=${LLVM_BIN:+$LLVM_BIN/}
expected=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
found=$("${tools}llvm-cov" --version | sed -n 's/.*LLVM version \([0-9]*\).*/\1/p')
[ "$expected" = "$found" ] || { echo "llvm-cov is of LLVM ${found:-?}; rustc needs $expected (see LLVM_BIN)" >&2; exit 2; }

scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/medfeed-coverage.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Other accounts have files here too: PostgreSQL's, and those of tests about accounts.
chmod 755 "$scratch"
mkdir -m 1777 "$scratch/files"
printf '#!/bin/sh\nexec "$@" -C instrument-coverage -C llvm-args=-runtime-counter-relocation\n' > "$scratch/rustc"
chmod +x "$scratch/rustc"
export RUSTC_WORKSPACE_WRAPPER=$scratch/../medfeed-coverage-rustc
mv "$scratch/rustc" "$RUSTC_WORKSPACE_WRAPPER"

programs=$(cargo test --lib --bins --tests --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
LLVM_PROFILE_FILE="$scratch/%c%4m.profraw" TMPDIR="$scratch/files" cargo test --lib --tests -- "$@" > target/coverage.log 2>&1 ||
    echo "some tests failed: see target/coverage.log" >&2
"${tools}llvm-profdata" merge -sparse "$scratch"/*.profraw -o "$scratch/merged"
objects=$(for program in $programs; do printf -- '-object %s ' "$program"; done)
# shellcheck disable=SC2086 # several words
"${tools}llvm-cov" export -format=lcov -instr-profile "$scratch/merged" $objects > "$scratch/lcov"

# A line counts once, also where several programs have it.
awk -v root="$PWD/src/" -v by="$by" '
    /^SF:/ {
        file = substr($0, 4)
        is_ours = index(file, root) == 1 && file !~ /\/tests?(_[a-z]+)?(\/|\.rs)/
        if (!is_ours || file in tests) next
        tests[file] = 1e9
        for (number = 1; (getline line < file) > 0; number++)
            if (line ~ /^#\[cfg\(test\)\]/ && tests[file] == 1e9) tests[file] = number
    }
    /^DA:/ && is_ours {
        split(substr($0, 4), parts, ",")
        if (parts[1] + 0 < tests[file]) runs[file, parts[1]] += parts[2]
    }
    END {
        for (key in runs) {
            split(key, parts, SUBSEP)
            name = substr(parts[1], length(root) + 1)
            if (by == "modules") sub(/[\/.].*/, "", name)
            lines[name]++
            if (runs[key] > 0) run[name]++
        }
        for (name in lines) printf "%-40s %6d lines %5.1f %%\n", name, lines[name], 100 * run[name] / lines[name]
    }' "$scratch/lcov" | sort
