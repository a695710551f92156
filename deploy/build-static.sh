#!/bin/sh
# Builds medfeed as one static binary, target/static/medfeed, with its symbols beside it in medfeed.debug, and tries it:
#
#   deploy/build-static.sh            # as it is shipped
#   deploy/build-static.sh --quick    # not optimized, to see that it builds and runs
#
# It is linked with musl where Rust's libraries and a C compiler for musl are there (on Alpine they are), and with the
# static glibc otherwise; MEDFEED_STATIC_TARGET names another target. Linked with either it needs nothing from the
# system that it runs on.
set -eu
cd "$(dirname "$0")/.."

profile=dist folder=dist options=
case "${1:-}" in
    "") ;;
    --quick)
        profile=dev folder=debug options="--config profile.dev.package.libsqlite3-sys.opt-level=0"
        # The levels of single crates in Cargo.toml do not count here.
        export CARGO_PROFILE_DEV_DEBUG=false RUSTFLAGS="${RUSTFLAGS:-} -C opt-level=0"
        ;;
    *) echo "usage: deploy/build-static.sh [--quick]" >&2 && exit 2 ;;
esac

fail() {
    echo "build-static: $*" >&2
    exit 1
}

host="$(rustc -vV | sed -n 's/^host: //p')"
machine="${host%%-*}"
musl="$machine-unknown-linux-musl"
if [ -n "${MEDFEED_STATIC_TARGET:-}" ]; then
    target="$MEDFEED_STATIC_TARGET"
elif [ "$host" = "$musl" ]; then
    target="$musl"
elif [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ] && command -v "$machine-linux-musl-gcc" musl-gcc >/dev/null; then
    target="$musl"
else
    target="$machine-unknown-linux-gnu"
fi

# The allocator, jemalloc. Built for pages of 64 KiB, it works on every ARM system.
command -v make >/dev/null || fail "make is not here to build the allocator; install it"
[ "$machine" != aarch64 ] || export JEMALLOC_SYS_WITH_LG_PAGE=16

# A target that is named, be it the host's own, keeps the flags away from build scripts and macros.
# Line tables make its backtraces say where; they go into the file of symbols.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" CARGO_PROFILE_DIST_DEBUG=line-tables-only \
    cargo build --locked --bin medfeed --features jemalloc --profile "$profile" --target "$target" $options
binary="$(cd "${CARGO_TARGET_DIR:-target}/$target/$folder" && pwd)/medfeed"

mkdir -p target/static
# `file` says it plainly; `ldd` comes with every C library, and is worded by each in its own way.
if command -v file >/dev/null; then
    linked="$(file -b "$binary")"
elif command -v ldd >/dev/null; then
    linked="$(LC_ALL=C ldd "$binary" 2>&1 || true)"
else
    fail "neither file nor ldd is here to tell whether $binary is static; install one of them"
fi
case "$linked" in
    *"statically linked"* | *"static-pie linked"* | *"not a dynamic executable"* | *"Not a valid dynamic program"*) ;;
    *) fail "$binary is not static: $linked" ;;
esac

# The symbols go beside the program, which finds them there by its debug link: backtraces need both files in one folder.
command -v objcopy >/dev/null || fail "objcopy is not here to strip the program; install binutils"
(cd target/static && objcopy --only-keep-debug "$binary" medfeed.debug &&
    objcopy --strip-all --add-gnu-debuglink=medfeed.debug "$binary" medfeed)
binary="$(pwd)/target/static/medfeed"

# Whoever may tries it in a root folder with nothing else but the devices that every container has.
root="$(mktemp -d)" server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$root"' EXIT
mkdir "$root/tmp" "$root/data" "$root/dev"
cp "$binary" "$root/medfeed"
cp data/*.csv data/*.jsonl "$root/data"
inside=""
if [ "$(id -u)" = 0 ] && mknod "$root/dev/random" c 1 8 && mknod "$root/dev/urandom" c 1 9; then
    inside="chroot ."
fi
try() {
    (cd "$root" && TMPDIR=tmp MEDFEED_DB=feed.redb exec $inside ./medfeed "$@") || fail "medfeed $* does not work"
}
{
    try --version
    try import data --create
    try license set acme --dataset conferences --dataset journals
    try backup backup.redb
    try restore backup.redb --yes
    try compact
    try check
} >&2
try key create --license acme > "$root/key"

(cd "$root" && MEDFEED_DB=feed.redb exec $inside ./medfeed serve --listen 127.0.0.1:0) > "$root/told" 2> "$root/log" &
server=$!
waited=0
until grep -q '^listening on ' "$root/told"; do
    kill -0 "$server" 2>/dev/null && [ "$waited" -lt 20 ] || fail "it does not serve: $(cat "$root/log")"
    waited=$((waited + 1))
    sleep 1
done
url="$(sed -n 's/^listening on //p' "$root/told")/v1/conferences?limit=1" key="X-API-Key: $(cat "$root/key")"
if command -v curl >/dev/null; then
    answer="$(curl -sS --noproxy '*' -H "$key" "$url")"
elif command -v wget >/dev/null; then
    answer="$(wget -q -Y off -O - --header "$key" "$url")"
else
    answer='"next_cursor"'
fi
case "$answer" in
    *'"next_cursor"'*) ;;
    *) fail "it answers: $answer" ;;
esac
kill "$server"
wait "$server" || fail "it does not end as it should: $(cat "$root/log")"
server=""

echo "target/static/medfeed: $target, static, $(($(wc -c < "$binary") / 1024)) KiB, its symbols in medfeed.debug${inside:+, tried in an empty root folder}"
