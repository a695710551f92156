"""Recipes that keep a copy of the records: each is brought up to date by `update`, and compared by `compare`."""

import json
import subprocess

from .service import EXAMPLES, environment


class Records:
    """A copy of the records, which `read` returns by id."""

    follows_redirects = False

    def compare(self, exports):
        """Yields, for each dataset, what was compared and the ids at which copy and export differ."""
        for dataset, records in exports.items():
            rows = self.read(dataset)
            wrong = sorted(rows.keys() ^ records.keys())
            wrong += [id for id in rows.keys() & records.keys() if not self.same(rows[id], records[id])]
            yield f"{dataset}: {len(rows)} of {len(records)} records", wrong


class Shell(Records):
    """The files that the shell script keeps."""

    needs = ["curl", "jq"]

    def __init__(self, service):
        self.folder, self.url = service.folder, service.url
        self.environ = service.environ | {"MEDFEED_KEY": service.key}

    def file(self, dataset):
        return self.folder / f"{dataset}.copy.jsonl"

    def update(self, after_restore):
        for dataset in ["conferences", "journals"]:
            command = ["sh", EXAMPLES / "shell" / "follow.sh", self.url, dataset, self.file(dataset)]
            done = subprocess.run(command, env=self.environ, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"error: follow.sh: {done.stdout}{done.stderr}")

    def read(self, dataset):
        rows = [json.loads(line) for line in self.file(dataset).read_text().splitlines()]
        assert [row["id"] for row in rows] == sorted({row["id"] for row in rows}), "the order of ids"
        return {row["id"]: row for row in rows}

    @staticmethod
    def same(row, record):
        return row == record


class Dlt(Records):
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


class Airbyte(Records):
    """The copy that an Airbyte destination keeps in the mode Incremental | Append + Deduped."""

    follows_redirects = True  # Without the key.

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
