"""A medfeed service to check recipes against, and where their tools are."""

import contextlib
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from follow import Failed, get

EXAMPLES = Path(__file__).resolve().parent.parent
TARGET = EXAMPLES.parent / "target"
DATASETS = ("conferences", "journals")
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
        self.run("import", "--create", *map(str, files), "--allow-removals", "1000")

    def license(self, *years, datasets=DATASETS):
        scope = [part for dataset in datasets for part in ("--dataset", dataset)]
        scope += [part for year in years for part in ("--year", str(year))]
        self.run("license", "set", "check", "--rate-limit", "100000", "--create", "--widen", "--yes", *scope)

    def serve(self):
        command = [self.program, "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        self.server = subprocess.Popen(command, env=self.environ, stdout=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().strip().removeprefix("listening on ")
        self.key = self.run("key", "create", "--license", "check")["key"]

    def export(self, dataset):
        _, body = get(f"{self.url}/v1/exports/{dataset}", self.key)
        rows = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        return {row["id"]: row for row in rows}

    def shown(self, expected, datasets=DATASETS):
        """Waits until the server shows these conferences (their venues by id), then returns the exports."""
        begun = time.monotonic()
        while True:
            with contextlib.suppress(Failed):  # The key and its license are there a moment later.
                exports = {dataset: self.export(dataset) if dataset in datasets else {} for dataset in DATASETS}
                if {id: row["venue"] for id, row in exports["conferences"].items()} == expected:
                    return exports
            if time.monotonic() - begun > PATIENCE_S:
                raise SystemExit("error: the server does not show what was imported")
            time.sleep(0.05)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait()
