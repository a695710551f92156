#!/usr/bin/env python3
"""Runs the program against independent stores: moto's server, from PyPI, and Azurite, from npm.

    cargo build && python3 tests/independent_store.py    # each store that can be had
    python3 tests/independent_store.py moto              # one alone
    python3 tests/independent_store.py azurite

The tests of `cargo test` have a store of their own, with the crate s3s. A mistake that both sides of one protocol share is
visible only with an independent store. moto answers as S3 does, Azurite as Azure Blob Storage does. Each is installed under
target/tools on first use, and listens on 127.0.0.1, on a port that it picks. A store that cannot be installed is left out,
with a message. If it was given by name, the test fails.

Each store gets the same test. A publisher is killed again and again while commits are made, and a replica follows. Two
publishers of two copies of one database race for the log. A backup is made from the bucket, and everything is checked. Exports
of the origin, of the replica and of the backup must be equal. MEDFEED_SEED sets the moments of the kills, MEDFEED_BIN names
another program.
"""

import argparse
import base64
import contextlib
import email.utils
import gzip
import hmac
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "target"
TIME_LIMIT_S = 60
FENCED = 4
SEED = int(os.environ.get("MEDFEED_SEED", "1"))
KILLS = 27
# The times from a commit to the kill of the publisher, as powers of ten: from 1 ms to 0.3 s, when all is published.
LIVES_S = (-3, -0.5)


def fail(what):
    raise SystemExit(f"error: {what}")


def wait_for(what, ask):
    """Polls until there is an answer."""
    begun = time.monotonic()
    while True:
        with contextlib.suppress(OSError):  # Not there yet, or an answer of another status.
            if answer := ask():
                return answer
        if time.monotonic() - begun > TIME_LIMIT_S:
            fail(f"not within {TIME_LIMIT_S} s: {what}")
        time.sleep(0.05)


def program():
    places = [os.environ.get("MEDFEED_BIN"), TARGET / "debug" / "medfeed", TARGET / "release" / "medfeed"]
    found = next((Path(place).resolve() for place in places if place and Path(place).is_file()), None)
    return str(found or fail("there is no medfeed program under target; run `cargo build` first, or set MEDFEED_BIN"))


class Missing(Exception):
    """A store cannot be installed here."""


def install(tool, *args):
    """Runs a tool that installs a store."""
    try:
        done = subprocess.run([tool, *args]).returncode == 0
    except FileNotFoundError:
        raise Missing(f"there is no {tool}") from None
    if not done:
        raise Missing(f"{Path(tool).name} cannot install {args[-1]}")


class Moto:
    """moto's server, which answers as S3 does."""

    name = "moto"
    package = "moto[server]==5.2.5"
    url = "s3://feed/some/prefix"

    def install(self):
        tools = TARGET / "tools" / "moto"
        if not (tools / "bin" / "pip").exists() and subprocess.run([sys.executable, "-m", "venv", tools]).returncode:
            raise Missing(f"{sys.executable} cannot make an environment in {tools}")
        try:
            install(tools / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", self.package)
        except Missing as missing:
            raise Missing(f"{missing}; this needs PyPI to be reachable") from None

    def command(self, folder):
        # moto's own server answers in threads, and then creates a name twice now and then. The program refuses such a
        # store.
        serve = (
            "from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app\n"
            "from werkzeug.serving import run_simple\n"
            "run_simple('127.0.0.1', 0, DomainDispatcherApplication(create_backend_app), threaded=False)\n"
        )
        return [TARGET / "tools" / "moto" / "bin" / "python", "-c", serve]

    def environ(self, endpoint):
        return {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "example",
            "AWS_SECRET_ACCESS_KEY": "example",
        }

    def create(self, endpoint):
        """The request that creates the bucket."""
        signed = "AWS4-HMAC-SHA256 Credential=example/20260101/us-east-1/s3/aws4_request"
        return urllib.request.Request(f"{endpoint}/feed", method="PUT", headers={"Authorization": signed})


class Azurite:
    """Azurite, which answers as Azure Blob Storage does."""

    name = "azurite"
    version = "3.35.0"  # Later ones need Node 21.
    url = "az://feed/some/prefix"
    # The only account of Azurite. Its key is public.
    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def install(self):
        tools = TARGET / "tools" / "azurite"
        # npm writes this last. Asked again, it would want the registry again.
        installed = tools / "node_modules" / ".package-lock.json"
        with contextlib.suppress(OSError, ValueError, KeyError):
            if json.loads(installed.read_text())["packages"]["node_modules/azurite"]["version"] == self.version:
                return
        options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        try:
            install("npm", "install", "--prefix", tools, *options, f"azurite@{self.version}")
        except Missing as missing:
            raise Missing(f"{missing}; this needs Node and npm, and npm's registry to be reachable") from None

    def command(self, folder):
        program = TARGET / "tools" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
        options = ["--location", folder / "azurite", "--silent", "--disableTelemetry"]
        return [program, "--blobHost", "127.0.0.1", "--blobPort", "0", *options]

    def environ(self, endpoint):
        # The settings are those for Azure itself. With AZURE_STORAGE_USE_EMULATOR the program would send other requests
        # than there.
        return {
            "AZURE_STORAGE_ENDPOINT": f"{endpoint}/{self.account}",
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": self.account,
            "AZURE_STORAGE_ACCOUNT_KEY": self.key,
        }

    def create(self, endpoint):
        """The request that creates the container, signed as Azure wants it (Shared Key)."""
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
        # None of the eleven standard headers that a signature covers is sent.
        covered = "PUT\n" + 11 * "\n" + "".join(f"{name}:{value}\n" for name, value in headers.items())
        covered += f"/{self.account}/{self.account}/feed\nrestype:container"
        signature = base64.b64encode(hmac.digest(base64.b64decode(self.key), covered.encode(), "sha256")).decode()
        headers["Authorization"] = f"SharedKey {self.account}:{signature}"
        url = f"{endpoint}/{self.account}/feed?restype=container"
        return urllib.request.Request(url, method="PUT", headers=headers)


STORES = [Moto(), Azurite()]


def start_store(store, folder, stopping):
    """Starts a store's server, and creates the bucket; returns the endpoint, which the server prints."""
    log = folder / f"{store.name}.log"
    with open(log, "w") as out:
        server = stopping(subprocess.Popen(store.command(folder), stdout=out, stderr=out))

    def told():
        if server.poll() is not None:
            fail(f"{store.name} has ended: {log.read_text()}")
        return re.search(r"(http://127\.0\.0\.1:[1-9]\d*)\s", log.read_text())

    endpoint = wait_for(store.name, told)[1]
    wait_for(f"a bucket in {store.name}", lambda: urllib.request.urlopen(store.create(endpoint)).status in (200, 201))
    return endpoint


class Place:
    """A folder with a database, and commands on it that get the store's settings by variables, as those of users do."""

    def __init__(self, folder, variables):
        self.folder = Path(folder)
        self.folder.mkdir()
        self.db = self.folder / "feed.redb"
        others = ("MEDFEED_", "AWS_", "AZURE_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self.environ = kept | {"MEDFEED_DB": str(self.db), "NO_PROXY": "*"} | variables

    def start(self, *args):
        log = open(self.folder / "log", "a")
        return subprocess.Popen([program(), *args], env=self.environ, stdout=subprocess.PIPE, stderr=log, text=True)

    def run(self, *args):
        done = subprocess.run([program(), *args, "--json"], env=self.environ, capture_output=True, text=True)
        if done.returncode:
            fail(f"medfeed {' '.join(args)}: exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def commit(self, version, count=60):
        """Imports conferences whose venue names the version."""
        unknown = {f"{date}_status": "check" for date in ["start_date", "abstract_due_date", "late_breaking_due_date"]}
        rows = [{"id": id, "name": f"Conference {id}", "year": 2025 + id % 3, "venue": f"version {version}"} | unknown
                for id in range(1, count - version % 7)]
        file = self.folder / "conferences.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.run("import", str(file), "--create", "--replace", "--allow-removals", "100")

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
    """Waits until a server shows a version. Returns its export."""
    def ask():
        found = export(url, key)
        return found if f'"version {version}"'.encode() in found[0] else None
    return wait_for(f"version {version} at {url}", ask)


def check(store, folder, stack):
    """Runs the whole test with one store, in a folder. The stack stops all started processes."""
    def stopping(process):
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def publishing(place):
        return stopping(place.start("publish", url, "--every", "100ms", "--log", "warn"))

    url, variables = store.url, store.environ(start_store(store, folder, stopping))
    origin, replica = Place(folder / "origin", variables), Place(folder / "replica", variables)
    origin.commit(0)
    origin.run("license", "set", "all", "--create", "--dataset", "conferences", "--rate-limit", "1000000")
    key = origin.run("key", "create", "--license", "all")["key"]

    # One publishes, the other follows. Both show the same, byte for byte.
    publisher = publishing(origin)
    wait_for("the first state", lambda: Path(f"{origin.db}.published").exists())
    (served, here), (following, there) = origin.serve(), replica.serve("--from", url, "--poll", "100ms")
    stopping(served), stopping(following)

    def equal(version):
        if shows(here, key, version) != shows(there, key, version):
            fail(f"version {version}: the replica's export or token is not the origin's")

    for version in range(1, 6):
        origin.commit(version)
        equal(version)
    print("5 versions: origin and replica are equal after each")

    # The same with a publisher that is killed after each commit, sometimes before it has published the commit.
    print(f"seed {SEED} (MEDFEED_SEED)")
    moments, waited = random.Random(SEED), 0
    for version in range(6, 6 + KILLS):
        if version % 2:
            publisher.stdout.readline()  # It has begun. Others may be killed before that.
        origin.commit(version)
        time.sleep(10 ** moments.uniform(*LIVES_S))
        if publisher.poll() is not None:
            fail(f"version {version}: medfeed publish has ended by itself: exit code {publisher.returncode}")
        publisher.kill(), publisher.wait()
        waited += not origin.run("publish", url, "--status")["published"]
        publisher = publishing(origin)
        if version % 3 == 2:
            equal(version)
    print(f"{KILLS} kills, {waited} of them before all was published: origin and replica are equal after each third")
    publisher.stdout.readline()  # It has begun: a signal ends it in order.
    publisher.terminate()
    if publisher.wait() != 0:
        fail(f"medfeed publish: exit code {publisher.returncode}")

    # Two copies of the database, each with a commit of its own: one continues, the other is fenced.
    copy = Place(folder / "copy", variables)
    wait_for("all is published", lambda: origin.run("publish", url, "--once")["seq"])
    origin.run("backup", str(copy.db))
    shutil.copy(f"{origin.db}.published", f"{copy.db}.published")
    origin.commit(101), copy.commit(102)
    racing = {version: publishing(place) for version, place in [(101, origin), (102, copy)]}
    lost = wait_for("one is fenced", lambda: next((v for v, p in racing.items() if p.poll() is not None), None))
    won = sum(racing) - lost
    if racing[lost].returncode != FENCED:
        fail(f"the publisher that lost: exit code {racing[lost].returncode} instead of {FENCED}")
    expected = shows(there, key, won)
    if racing[won].poll() is not None:
        fail("the publisher that won has ended")
    racing[won].terminate()
    print(f"two publishers: one continued, the other ended with exit code {FENCED}")

    # The bucket is sound, and a backup of it has the same export.
    audit = replica.run("check", "--from", url)
    if audit["given_up"]:
        fail(f"slots of the log are missing: {audit['given_up']}")
    restored = Place(folder / "restored", variables)
    replica.run("backup", str(restored.db), "--from", url)
    again, url_again = restored.serve()
    stopping(again)
    if shows(url_again, key, won) != expected:
        fail("the export of a backup from the bucket is not the replica's")
    print(f"backup and check: {audit['states']} states and {audit['entries']} entries come to seq {audit['seq']}")


def run(store):
    folder = Path(tempfile.mkdtemp(prefix=f"medfeed-{store.name}-"))
    try:
        with contextlib.ExitStack() as stack:
            check(store, folder, stack)
    except BaseException:
        print(f"what was done and logged is in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    print(f"medfeed and {store.name} agree")


def main():
    parser = argparse.ArgumentParser(description="Runs the program against stores that others wrote.")
    names = [store.name for store in STORES]
    parser.add_argument("store", nargs="?", choices=names, help="this one alone; else each that can be had")
    only = parser.parse_args().store
    program()
    done = 0
    for store in STORES:
        if only not in (None, store.name):
            continue
        try:
            store.install()
        except Missing as missing:
            if only:
                fail(missing)
            print(f"{store.name} is left out: {missing}")
            continue
        print(f"== {store.name}")
        run(store)
        done += 1
    if not done:
        fail("there is no store to run against")


if __name__ == "__main__":
    main()
