#!/bin/sh
# Cargo calls this in place of rustc (RUSTC_WRAPPER). It adds LLVM's coverage counters to medfeed and to the parsers that read
# its input. Counters in all crates would make each run slower and say little. Build scripts and macros have no `--target`.
rustc=$1
shift
name='' has_target=''
previous=''
for argument in "$@"; do
    [ "$previous" = --crate-name ] && name=$argument
    [ "$argument" = --target ] && has_target=1
    previous=$argument
done
case $has_target$name in
    1medfeed | 1calamine | 1csv | 1csv_core | 1quick_xml | 1rmp | 1rmp_serde | 1serde_json)
        exec "$rustc" "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
            -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1
        ;;
esac
exec "$rustc" "$@"
