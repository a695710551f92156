#!/bin/sh
# Builds what is shipped, into target/package, and tries it:
#
#   deploy/package.sh            # as it is shipped
#   deploy/package.sh --quick    # not optimized, to see that it builds and works
#
# - medfeed and medfeed.debug: the static binary and its symbols
# - medfeed_VERSION_ARCH.deb: a Debian package (cargo-deb), which is installed in a test folder: with root, debootstrap and
#   systemd-tmpfiles into a small Debian of its own, where its service's command then runs; otherwise it is only unpacked there
# - medfeed.cdx.json: what it is made of (SBOM, CycloneDX)
# - SHA256SUMS
#
# With root, what the container image does is tried in a chroot (deploy/try-image.sh).
set -eu
cd "$(dirname "$0")/.."

deb_version=3.8.0
cyclonedx_version=0.5.9

fail() {
    echo "package: $*" >&2
    exit 1
}

# A tool for everybody in one version, built once and kept under target/.
tool() {
    if ! target/tools/bin/"$1" "${3:-}" --version 2>/dev/null | grep -qF "$2"; then
        env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
            cargo install "$1" --version "$2" --locked --debug --force --root target/tools
    fi
}
tool cargo-deb "$deb_version"
tool cargo-cyclonedx "$cyclonedx_version" cyclonedx

deploy/build-static.sh "$@"
out="$PWD/target/package"
rm -rf "$out" && mkdir -p "$out"
cp target/static/medfeed target/static/medfeed.debug "$out"

# What the program says of itself goes into the package.
made=target/static/made
rm -rf "$made" && mkdir -p "$made"
target/static/medfeed man "$made" && gzip -9n "$made"/*.1
for shell in bash zsh fish; do target/static/medfeed completions "$shell" > "$made/medfeed.$shell"; done
target/tools/bin/cargo-deb --no-build --no-strip --output "$out"
target/tools/bin/cargo-cyclonedx cyclonedx --features jemalloc --format json --spec-version 1.5 --override-filename medfeed.cdx
mv medfeed.cdx.json "$out"
(cd "$out" && sha256sum -- * > SHA256SUMS)

deb="$(ls "$out"/*.deb)"
root="$(mktemp -d)"
trap 'rm -rf "$root"' EXIT
if [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null && command -v systemd-tmpfiles > /dev/null; then
    # The small Debian is made once and kept.
    base=target/tools/debian.tar
    if [ ! -e "$base" ]; then
        debootstrap --variant=minbase --include=systemd,procps bookworm "$root" > "$out.log" 2>&1 || fail "no Debian to install into: $(tail -n 5 "$out.log")"
        tar -C "$root" -cf "$base.new" . && mv "$base.new" "$base"
    else
        tar -C "$root" -xf "$base"
    fi
    # mktemp keeps others out, the service's user among them.
    chmod 755 "$root"
    cp "$deb" "$root/medfeed.deb"
    chroot "$root" dpkg -i /medfeed.deb >&2
    cp -r data "$root/import"
    as_service() {
        # The unit's own variables and command, as its user.
        # shellcheck disable=SC2046
        env -i PATH=/usr/bin:/bin $(sed -n 's/^Environment=//p' "$root/usr/lib/systemd/system/medfeed.service") \
            "$(command -v chroot)" --userspec=medfeed:medfeed "$root" "$@"
    }
    # From outside: inside there is no /proc for it.
    systemd-tmpfiles --root="$root" --create medfeed.conf
    as_service medfeed import /import --create >&2
    as_service medfeed check >&2
    [ "$(chroot "$root" stat -c %U:%a /var/lib/medfeed)" = medfeed:750 ] || fail "/var/lib/medfeed is not the service's alone"
    # A unit that is not told where to publish does not start.
    [ ! -e "$root/etc/systemd/system/multi-user.target.wants/medfeed-publish.service" ] || fail "publishing is enabled"
    as_service /usr/bin/env MEDFEED_PUBLISH_URL=file:///var/lib/medfeed/bucket medfeed publish --once >&2
    # The nightly backup is off, too. Its commands work.
    [ ! -e "$root/etc/systemd/system/timers.target.wants/medfeed-backup.timer" ] || fail "the backup is enabled"
    as_service /bin/sh -ec "mkdir /var/lib/medfeed/backups && cd /var/lib/medfeed/backups
        $(sed -n 's/^ExecStart=//p' "$root/usr/lib/systemd/system/medfeed-backup.service" | sed 's/\$\$/$/g; s/%%/%/g')" >&2
    chroot "$root" systemd-analyze verify medfeed.service medfeed.socket medfeed-publish.service \
        medfeed-backup.service medfeed-backup.timer || fail "systemd does not take the units"
    chroot "$root" dpkg --purge medfeed >&2
    [ -e "$root/var/lib/medfeed/medfeed.redb" ] || fail "removing the package removed the database"
    tried="installed, run and removed in a small Debian"
else
    dpkg-deb -x "$deb" "$root"
    "$root/usr/bin/medfeed" --version >&2
    tried="unpacked only: installing it needs root, debootstrap and systemd-tmpfiles"
fi
echo "$(basename "$deb"): $tried"
if [ "$(id -u)" = 0 ]; then
    deploy/try-image.sh
else
    echo "the image's steps are left out: a chroot needs root"
fi
ls -l "$out"
