#!/bin/sh
# Does in a chroot what the image of deploy/Dockerfile does in a container, as its user and with its variables, folders,
# commands and health check, which are read from the Dockerfile itself. Needs root and target/static/medfeed.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "try-image: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail "a chroot needs root"
[ -x target/static/medfeed ] || fail "target/static/medfeed is missing; run deploy/build-static.sh"

# The last stage is the image.
stage="$(sed -n '/^FROM scratch/,$p' deploy/Dockerfile)"
said() { printf '%s\n' "$stage" | sed -n "s/^$1 //p"; }
listed() { printf '%s\n' "$1" | sed 's/.*\[//; s/\].*//; s/[",]/ /g'; }
user="$(said USER)"
entry="$(listed "$(said ENTRYPOINT)")"
command="$(listed "$(said CMD)")"
health="$(listed "$(said HEALTHCHECK)")"
[ -n "$user" ] && [ -n "$entry" ] && [ -n "$command" ] && [ -n "$health" ] || fail "deploy/Dockerfile is not understood"

root="$(mktemp -d)" server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$root"' EXIT
chmod 755 "$root"
# What every container has, and what the image copies.
mkdir "$root/dev" "$root/data" "$root/import"
mkdir -m 700 "$root/feed"
mkdir -p "$root/etc/ssl/certs"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
cp target/static/medfeed "$root/medfeed"
cp data/*.csv data/*.jsonl "$root/import"
chown "$user" "$root/data" "$root/feed"

# Another port: 8080 may be taken on this machine, which a container's is not.
port=18080
while grep -qi ":$(printf '%04x' $port) 00000000:0000 0A" /proc/net/tcp; do port=$((port + 1)); done
variables="$(said ENV | sed "s/:8080/:$port/")"
# shellcheck disable=SC2086 # the words are meant to be split
inside() { env -i $variables "$(command -v chroot)" --userspec="$user" "$root" "$@"; }

# shellcheck disable=SC2086
env -i $variables "$(command -v chroot)" --userspec="$user" "$root" $entry $command > "$root/told" 2> "$root/log" &
server=$!
waited=0
# shellcheck disable=SC2086
until inside $health > "$root/health" 2>&1; do
    kill -0 "$server" 2>/dev/null && [ "$waited" -lt 100 ] || fail "it is not healthy: $(cat "$root/health" "$root/log")"
    waited=$((waited + 1))
    sleep 0.1
done
# shellcheck disable=SC2086
{
    inside $entry import /import
    inside $entry license set acme --dataset conferences --dataset journals
    inside $entry key create --license acme > "$root/key"
} >&2 || fail "a command does not work beside the server"
# shellcheck disable=SC2086
inside $entry publish file:///feed --once >&2 || fail "it cannot publish into the folder for that"
key="$(grep -o 'mfk_[A-Za-z0-9_-]*' "$root/key" | head -n 1)"
answered=""
for _ in $(seq 50); do
    answer="$(curl -sS --noproxy '*' -H "X-API-Key: $key" "http://127.0.0.1:$port/v1/conferences?limit=1")"
    case "$answer" in *'"id":'*) answered=yes && break ;; esac
    sleep 0.1
done
[ -n "$answered" ] || fail "it answers: $answer"
kill "$server"
wait "$server" || fail "it does not end as it should: $(cat "$root/log")"
server=""
# shellcheck disable=SC2086
inside $health > "$root/health" 2>&1 && fail "it says that a stopped server is healthy"
[ "$(stat -c %u:%g "$root/data/medfeed.redb")" = "$user" ] || fail "the database does not belong to $user"

echo "the image's binary, user, variables, commands and health check work in a chroot"
