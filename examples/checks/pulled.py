"""Recipes that ask a copy of `medfeed pull`. Their answers must be those that the exports give."""

import csv
import subprocess
from datetime import date, datetime, timedelta

from .service import EXAMPLES, environment


def deadlines(exports, now):
    today = now.date()
    for record in exports["conferences"].values():
        for kind, name in [("abstract", "abstract_due_date"), ("late-breaking", "late_breaking_due_date")]:
            days = record[name] and (date.fromisoformat(record[name]) - today).days
            if days is not None and 0 <= days <= 90:
                for area in record["therapy_areas"] or [""]:
                    yield area, record[name], days, kind, record[f"{name}_status"], record["id"], record["name"]


def changes(exports, now):
    since = (now - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for dataset, records in exports.items():
        for record in records.values():
            if record["updated_at"] >= since:
                yield dataset, record["id"], record["name"], record["updated_at"][:19]


def organizations(exports, now):
    starts = {}
    for record in exports["conferences"].values():
        for organization in record["organizations"]:
            starts.setdefault(organization["name"], []).append(record["start_date"])
    for name, dates in starts.items():
        to_come = [start for start in dates if start and start >= now.date().isoformat()]
        yield name, len(dates), len(to_come), min(to_come, default="")


# For each question the columns of its answer that tell the order of rows.
QUESTIONS = {deadlines: (0, 1, 5, 3), changes: (0, 1), organizations: (0,)}


def expected(exports, now):
    """The tables that a recipe prints, by their titles."""
    answers = {}
    for question, order in QUESTIONS.items():
        rows = sorted(question(exports, now), key=lambda row: [row[column] for column in order])
        answers[question.__name__] = [[str(cell) for cell in row] for row in rows]
    return answers


def printed(text):
    """The tables that a recipe has printed, by their titles; times as the exports write them."""
    answers = {}
    for block in text.strip().split("\n\n"):
        title, header, *lines = block.strip().splitlines()
        rows = list(csv.reader(lines))
        if header.replace('"', "").endswith(",updated_at"):
            rows = [[*row[:-1], row[-1][:19].replace(" ", "T")] for row in rows]
        answers[title.removeprefix("# ")] = rows
    return answers


class Pulled:
    """A copy of `medfeed pull` as a file and as a folder, and a script that asks them."""

    forms = ["copy.sqlite", "folder/"]
    follows_redirects = False

    def __init__(self, service):
        self.service, self.interpreter = service, self.find()

    def find(self):
        return environment("pulled", EXAMPLES / "pulled" / "requirements.txt") / "python"

    def update(self, after_restore):
        environ = self.service.environ | {"MEDFEED_KEY": self.service.key}
        for form in self.forms:
            command = [self.service.program, "pull", self.service.url, "--to", form]
            done = subprocess.run(command, env=environ, cwd=self.service.folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"error: medfeed pull: {done.stdout}{done.stderr}")

    def compare(self, exports):
        """Yields, for each form and question, what was compared and the rows at which the answers differ."""
        # A day after the newest change, so that the last commit's records are those that changed within a day.
        times = (record["updated_at"] for records in exports.values() for record in records.values())
        now = datetime.fromisoformat(max(times, default="2026-01-01T00:00:00Z")) + timedelta(days=1)
        answers = expected(exports, now)
        for form in self.forms:
            command = [self.interpreter, EXAMPLES / "pulled" / self.script, form, now.strftime("%Y-%m-%dT%H:%M:%SZ")]
            environ = self.service.environ | {"LC_ALL": "C.UTF-8"}
            done = subprocess.run(command, env=environ, cwd=self.service.folder, capture_output=True, text=True)
            if done.returncode or done.stderr:
                raise SystemExit(f"error: {self.script} {form}: {done.stderr}")
            told = printed(done.stdout)
            assert told.keys() == answers.keys(), told.keys()
            for question, rows in answers.items():
                found = told[question]
                wrong = [pair for pair in zip(found, rows) if pair[0] != pair[1]]
                wrong += found[len(rows):] + rows[len(found):]
                yield f"{form} {question}: {len(found)} of {len(rows)} rows", wrong


class Pandas(Pulled):
    script = "with_pandas.py"


class Polars(Pulled):
    script = "with_polars.py"


class Duckdb(Pulled):
    script = "with_duckdb.py"
    forms = ["folder/"]


class R(Pulled):
    script = "with_r.R"
    needs = ["Rscript"]

    def find(self):
        has_sqlite = subprocess.run(["Rscript", "-e", "library(DBI); library(RSQLite)"], capture_output=True)
        if has_sqlite.returncode:
            print("R: DBI and RSQLite are not installed: the SQLite file is left out")
            self.forms = ["folder/"]
        return "Rscript"
