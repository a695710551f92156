#!/usr/bin/env python3
"""Runs the program against an S3 store that others wrote: moto's server, from PyPI.

    cargo build && python3 tests/independent_store.py

The tests of `cargo test` bring a store of their own, by the crate s3s; what both sides of one protocol get wrong together is
seen only where somebody else's code answers. moto is installed into an environment under target/, and listens on 127.0.0.1.
Two publishers of two copies of one database race for the log, a replica follows, a backup is made from the bucket and all of it
is checked. Exports of the origin, of the replica and of the backup must be equal. MEDFEED_BIN names another program.
"""

import contextlib
import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "target"
STORE = "moto[server]==5.2.5"
PATIENCE_S = 60
FENCED = 4


def fail(what):
    raise SystemExit(f"error: {what}")


def wait_for(what, ask):
    """Asks again and again until there is an answer."""
    begun = time.monotonic()
    while True:
        with contextlib.suppress(OSError):  # Not there yet, or an answer of another status.
            if answer := ask():
                return answer
        if time.monotonic() - begun > PATIENCE_S:
            fail(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.05)


def program():
    places = [os.environ.get("MEDFEED_BIN"), TARGET / "debug" / "medfeed", TARGET / "release" / "medfeed"]
    found = next((Path(place).resolve() for place in places if place and Path(place).is_file()), None)
    return str(found or fail("there is no medfeed program under target; run `cargo build` first, or set MEDFEED_BIN"))


def moto_server():
    """moto's server, installed on first use."""
    folder = TARGET / "tools" / "moto"
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", STORE]
    if subprocess.run(install).returncode:
        fail(f"pip cannot install {STORE}; this needs PyPI to be reachable")
    return folder / "bin" / "moto_server"


class Place:
    """A folder with a database, and commands on it that find the store as users tell them: by AWS_* variables."""

    def __init__(self, folder, endpoint):
        self.folder = Path(folder)
        self.folder.mkdir()
        self.db = self.folder / "feed.redb"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEDFEED_", "AWS_"))}
        self.environ = kept | {
            "MEDFEED_DB": str(self.db),
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "example",
            "AWS_SECRET_ACCESS_KEY": "example",
            "NO_PROXY": "*",
        }

    def start(self, *args):
        log = open(self.folder / "log", "a")
        return subprocess.Popen([program(), *args], env=self.environ, stdout=subprocess.PIPE, stderr=log, text=True)

    def run(self, *args):
        done = subprocess.run([program(), *args, "--json"], env=self.environ, capture_output=True, text=True)
        if done.returncode:
            fail(f"medfeed {' '.join(args)}: exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def commit(self, version, count=60):
        """Imports conferences whose venue tells the version."""
        unknown = {f"{date}_status": "check" for date in ["start_date", "abstract_due_date", "late_breaking_due_date"]}
        rows = [{"id": id, "name": f"Conference {id}", "year": 2025 + id % 3, "venue": f"version {version}"} | unknown
                for id in range(1, count - version % 7)]
        file = self.folder / "conferences.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.run("import", str(file), "--replace", "--allow-removals", "100")

    def serve(self, *args):
        """Starts a server; returns it and its URL."""
        server = self.start("serve", "--listen", "127.0.0.1:0", "--log", "warn", *args)
        url = server.stdout.readline().strip().removeprefix("listening on ")
        return server, url or fail(f"medfeed serve {' '.join(args)}: {(self.folder / 'log').read_text()}")


def export(url, key):
    """The bytes of the export, once decompressed, and its sync token."""
    request = urllib.request.Request(f"{url}/v1/exports/conferences", headers={"X-API-Key": key})
    with urllib.request.urlopen(request) as answer:
        return gzip.decompress(answer.read()), answer.headers["X-Sync-Token"]


def shows(url, key, version):
    """The export of a server once it is of a version."""
    def ask():
        found = export(url, key)
        return found if f'"version {version}"'.encode() in found[0] else None
    return wait_for(f"version {version} at {url}", ask)


def check(folder, stack):
    """All of it, in a folder. What is started is stopped by the stack."""
    def stopping(process):
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    with open(folder / "moto.log", "w") as log:
        stopping(subprocess.Popen([moto_server(), "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log))
    create = urllib.request.Request(f"{endpoint}/feed", method="PUT", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=example/20260101/us-east-1/s3/aws4_request"})
    wait_for("moto", lambda: urllib.request.urlopen(create).status == 200)
    url = "s3://feed/some/prefix"

    origin, replica = Place(folder / "origin", endpoint), Place(folder / "replica", endpoint)
    origin.commit(0)
    origin.run("license", "set", "all", "--dataset", "conferences", "--rate-limit", "1000000")
    key = origin.run("key", "create", "--license", "all")["key"]

    # One publishes, the other follows; what either shows is the same, byte for byte.
    publisher = stopping(origin.start("publish", url, "--every", "100ms", "--log", "warn"))
    wait_for("the first state", lambda: Path(f"{origin.db}.published").exists())
    (served, here), (following, there) = origin.serve(), replica.serve("--from", url, "--poll", "100ms")
    stopping(served), stopping(following)
    for version in range(1, 6):
        origin.commit(version)
        if shows(here, key, version) != shows(there, key, version):
            fail(f"version {version}: the replica's export or token is not the origin's")
        print(f"version {version}: origin and replica are equal")
    publisher.terminate()
    if publisher.wait() != 0:
        fail(f"medfeed publish: exit code {publisher.returncode}")

    # Two copies of the database, each with a commit of its own: one goes on, the other is fenced.
    copy = Place(folder / "copy", endpoint)
    wait_for("all is published", lambda: origin.run("publish", url, "--once")["seq"])
    origin.run("backup", str(copy.db))
    shutil.copy(f"{origin.db}.published", f"{copy.db}.published")
    origin.commit(11), copy.commit(12)
    racing = {version: stopping(place.start("publish", url, "--every", "100ms", "--log", "warn"))
              for version, place in [(11, origin), (12, copy)]}
    lost = wait_for("one is fenced", lambda: next((v for v, p in racing.items() if p.poll() is not None), None))
    won = 23 - lost
    if racing[lost].returncode != FENCED:
        fail(f"the publisher that lost: exit code {racing[lost].returncode} instead of {FENCED}")
    expected = shows(there, key, won)
    if racing[won].poll() is not None:
        fail("the publisher that won has ended")
    racing[won].terminate()
    print(f"two publishers: one went on, the other ended with exit code {FENCED}")

    # What is in the bucket is sound, and comes to the same.
    audit = replica.run("check", "--from", url)
    restored = Place(folder / "restored", endpoint)
    replica.run("backup", str(restored.db), "--from", url)
    again, url_again = restored.serve()
    stopping(again)
    if shows(url_again, key, won) != expected:
        fail("the export of a backup from the bucket is not the replica's")
    print(f"backup and check: {audit['states']} states and {audit['entries']} entries come to seq {audit['seq']}")


def main():
    program()
    folder = Path(tempfile.mkdtemp(prefix="medfeed-store-"))
    try:
        with contextlib.ExitStack() as stack:
            check(folder, stack)
    except BaseException:
        print(f"what was done and logged is in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    print("medfeed and an independent store agree")


if __name__ == "__main__":
    main()
