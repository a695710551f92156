#!/usr/bin/env python3
"""Runs the recipes for dlt and Airbyte against a live medfeed server, and compares their copies with the export.

    cargo build && python3 examples/check.py [dlt] [airbyte]

After every step (edits, removals, a wider license, a narrower one, a restore, ...) the copy must be what the license shows.
The tools come from PyPI into environments of their own under target/recipes. MEDFEED_BIN names another program.
"""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
TARGET = EXAMPLES.parent / "target"
STATUSES = {f"{date}_status": "not_found" for date in ["start_date", "abstract_due_date", "late_breaking_due_date"]}
PATIENCE_S = 30


def environment(name, requirements):
    """The folder of programs of a virtual environment with these packages."""
    folder = TARGET / "recipes" / name
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements]
    if subprocess.run(install).returncode:
        raise SystemExit(f"error: pip cannot install {requirements}; this check needs PyPI to be reachable")
    return folder / "bin"


def program():
    """The medfeed program."""
    places = [os.environ.get("MEDFEED_BIN"), TARGET / "debug" / "medfeed", TARGET / "release" / "medfeed"]
    for place in places:
        if place and Path(place).is_file():
            return str(Path(place).resolve())
    raise SystemExit("error: there is no medfeed program under target; run `cargo build` first, or set MEDFEED_BIN")


class Service:
    """A database in a folder, commands on it, and a server of it."""

    def __init__(self, folder):
        self.folder, self.program = Path(folder), program()
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("MEDFEED_")}
        self.environ |= {"MEDFEED_DB": str(self.folder / "feed.redb"), "NO_PROXY": "*"}
        self.server = self.key = self.url = None

    def run(self, *args):
        done = subprocess.run([self.program, *args, "--json"], env=self.environ, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: medfeed {' '.join(args)}: {done.stderr}")
        return json.loads(done.stdout)

    def import_rows(self, **datasets):
        """Imports the rows of datasets, in one commit."""
        files = [self.folder / f"{dataset}.jsonl" for dataset in datasets]
        for file, rows in zip(files, datasets.values()):
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.run("import", *map(str, files), "--allow-removals", "1000")

    def license(self, *years):
        scope = [part for year in years for part in ("--year", str(year))]
        self.run("license", "set", "check", "--dataset", "conferences", "--dataset", "journals", "--rate-limit",
                 "100000", "--widen", *scope)

    def serve(self):
        command = [self.program, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        self.server = subprocess.Popen(command, env=self.environ, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().strip().removeprefix("listening on ")
        self.key = self.run("key", "create", "--license", "check")["key"]

    def export(self, dataset):
        request = urllib.request.Request(f"{self.url}/v1/exports/{dataset}", headers={"X-API-Key": self.key})
        with urllib.request.urlopen(request) as answer:
            rows = [json.loads(line) for line in gzip.decompress(answer.read()).splitlines()]
        return {row["id"]: row for row in rows}

    def shown(self, expected):
        """Waits until the server shows these conferences (their venues by id), then returns both exports."""
        begun = time.monotonic()
        while True:
            with contextlib.suppress(urllib.error.HTTPError):  # The key and its license are there a moment later.
                exports = {dataset: self.export(dataset) for dataset in ["conferences", "journals"]}
                if {id: row["venue"] for id, row in exports["conferences"].items()} == expected:
                    return exports
            if time.monotonic() - begun > PATIENCE_S:
                raise SystemExit("error: the server does not show what was imported")
            time.sleep(0.05)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait()


class Dlt:
    """The copy of dlt, in DuckDB."""

    def __init__(self, service):
        self.bin = environment("dlt", EXAMPLES / "dlt" / "requirements.txt")
        self.folder = service.folder
        self.environ = service.environ | {
            "SOURCES__MEDFEED__URL": service.url,
            "SOURCES__MEDFEED__API_KEY": service.key,
            "DLT_DATA_DIR": str(self.folder / "dlt"),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
        }

    def python(self, *args):
        command = [self.bin / "python", *args]
        done = subprocess.run(command, env=self.environ, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"error: {args[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def update(self, after_restore):
        self.python(EXAMPLES / "dlt" / "medfeed_dlt.py")

    def read(self, dataset):
        query = f"""import duckdb, json
rows = duckdb.connect("medfeed.duckdb", read_only=True).sql("SELECT * FROM feed.{dataset}")
names = rows.columns
print(json.dumps([dict(zip(names, row)) for row in rows.fetchall()], default=str))"""
        rows = json.loads(self.python("-c", query))
        return {row["id"]: row for row in rows}

    @staticmethod
    def same(row, record):
        """Whether a row is the record: dlt makes times of times, JSON texts of lists and objects, and no column of what was
        never given."""
        row = {name: value for name, value in row.items() if not name.startswith("_dlt") and name != "deleted"}
        return all(Dlt.plain(row.pop(name, None)) == Dlt.plain(value) for name, value in record.items()) and not any(
            value is not None for value in row.values())

    @staticmethod
    def plain(value):
        if isinstance(value, str) and value[:1] in "[{":
            value = json.loads(value)
        if isinstance(value, str) and value[10:11] in ("T", " "):
            return value[:10] + "T" + value[11:19]
        return value


class Airbyte:
    """The copy that an Airbyte destination keeps in the mode Incremental | Append + Deduped."""

    def __init__(self, service):
        self.bin = environment("airbyte", EXAMPLES / "airbyte" / "requirements.txt")
        self.folder, self.environ = service.folder, service.environ
        self.config = self.write("config.json", {"url": service.url, "api_key": service.key})
        self.rows, self.states = {}, {}

    def write(self, name, value):
        file = self.folder / name
        file.write_text(json.dumps(value))
        return file

    def run(self, command, *args):
        manifest = EXAMPLES / "airbyte" / "manifest.yaml"
        line = [self.bin / "source-declarative-manifest", command, "--config", self.config, "--manifest-path", manifest]
        done = subprocess.run([*line, *args], env=self.environ, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode:
            raise SystemExit(f"error: Airbyte's {command}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return messages

    def update(self, after_restore):
        if after_restore:
            # What an operator does: "Refresh your data", and remove the records of the former sync.
            self.rows, self.states = {}, {}
        if not self.states:
            [status] = [message["connectionStatus"] for message in self.run("check") if "connectionStatus" in message]
            assert status["status"] == "SUCCEEDED", status
        [catalog] = [message["catalog"] for message in self.run("discover") if "catalog" in message]
        streams = [{"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append_dedup"}
                   for stream in catalog["streams"]]
        catalog = self.write("catalog.json", {"streams": streams})
        state = self.write("state.json", list(self.states.values()))
        for message in self.run("read", "--catalog", catalog, "--state", state):
            if "record" in message:
                stream, row = message["record"]["stream"], message["record"]["data"]
                rows = self.rows.setdefault(stream, {})
                if row["id"] not in rows or rows[row["id"]]["synced_at"] <= row["synced_at"]:
                    rows[row["id"]] = row
            elif "state" in message:
                self.states[message["state"]["stream"]["stream_descriptor"]["name"]] = message["state"]

    def read(self, dataset):
        return {id: row for id, row in self.rows[dataset].items() if not row["deleted"]}

    @staticmethod
    def same(row, record):
        """Whether a row is the record: Airbyte's messages leave out members that are null."""
        row = {name: value for name, value in row.items() if name not in ("deleted", "synced_at")}
        return Airbyte.plain(row) == Airbyte.plain(record)

    @staticmethod
    def plain(value):
        if isinstance(value, dict):
            return {name: Airbyte.plain(item) for name, item in value.items() if item is not None}
        return [Airbyte.plain(item) for item in value] if isinstance(value, list) else value


def conference(id, version):
    return {
        "id": id,
        "name": f"Conference {id}",
        "year": 2025 + id % 2,
        "country": ["Japan", "France"][id % 3 % 2],
        "therapy_areas": [["Oncology"], ["Cardiology", "Oncology"], []][id % 3],
        "organizations": [{"id": 1, "name": "A society", "abbv": None, "type": None, "url": None}] if id % 2 else [],
        "formats": {"oral": id % 5 == 0},
        "venue": f"version {version}",
        **STATUSES,
    }


def check(recipe):
    """Goes through the steps with a recipe; returns how many copies differed."""
    differing = 0
    with tempfile.TemporaryDirectory(prefix="medfeed-check-") as folder:
        service = Service(folder)
        try:
            versions = {id: 0 for id in range(1, 1301)}
            years = (2026,)
            put = lambda ids, version: (
                versions.update((id, version) for id in ids),
                service.import_rows(conferences=[conference(id, version) for id in ids]),
            )
            put(range(1, 1301), 0)
            service.import_rows(journals=[{"id": id, "name": f"Journal {id}", "impact_factor": id / 4,
                                           "timelines": {"accept_to_online": {"min_weeks": 1.5}}}
                                          for id in range(1, 41)])
            service.license(*years)
            service.serve()
            copy = recipe(service)

            def compare(step, after_restore=False):
                nonlocal differing
                shown = {id: f"version {version}" for id, version in versions.items() if 2025 + id % 2 in years}
                exports = service.shown(shown)
                copy.update(after_restore)
                for dataset, records in exports.items():
                    rows = copy.read(dataset)
                    wrong = sorted(rows.keys() ^ records.keys())
                    wrong += [id for id in rows.keys() & records.keys() if not copy.same(rows[id], records[id])]
                    differing += bool(wrong)
                    verdict = f"DIFFERS at {wrong[:5]}" if wrong else "equal"
                    print(f"{recipe.__name__}: {step}: {dataset}: {len(rows)} of {len(records)} records, {verdict}")

            compare("first load")
            compare("nothing new")
            service.run("backup", str(service.folder / "backup.redb"))
            kept = dict(versions)
            put(range(1, 700), 1)
            compare("edits")
            removed = [*range(500, 560), 9]
            service.import_rows(conferences=[{"id": id, "deleted": True} for id in removed],
                                journals=[{"id": 40, "deleted": True}, {"id": 39, "name": "Renamed"}])
            for id in removed:
                del versions[id]
            compare("removals")
            years = (2025, 2026)
            service.license(*years)
            compare("a wider license")
            years = (2025,)
            service.license(*years)
            compare("a narrower license")
            years = (2025, 2026)
            service.license(*years)
            compare("a wider license again")
            put(removed, 2)
            compare("removed records come back")
            versions, years = kept, (2026,)
            service.run("restore", str(service.folder / "backup.redb"), "--yes")
            # A restore takes the keys back too; this one was there already.
            compare("a restore", after_restore=True)
            put(range(1, 20), 3)
            compare("edits after the restore")
        finally:
            service.stop()
    return differing


def main():
    recipes = {"dlt": Dlt, "airbyte": Airbyte}
    chosen = sys.argv[1:] or list(recipes)
    if not recipes.keys() >= set(chosen):
        raise SystemExit(f"usage: check.py [{'] ['.join(recipes)}]")
    differing = sum(check(recipes[name]) for name in chosen)
    if differing:
        raise SystemExit(f"error: {differing} copies differ from what the license shows")
    print("all copies are what the license shows")


if __name__ == "__main__":
    main()
