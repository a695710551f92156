#!/usr/bin/env python3
"""The usual questions with pandas, asked of a copy that `medfeed pull` keeps: an SQLite file, or a folder.

    python3 with_pandas.py copy.sqlite
    python3 with_pandas.py folder/ 2026-03-01T00:00:00Z     # as if it were then
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pandas as pd

DATES = ["start_date", "end_date", "abstract_due_date", "late_breaking_due_date"]
# The columns that the questions need, also where a dataset has no records.
COLUMNS = {
    "conferences": ["id", "name", "updated_at", "therapy_areas", "organizations", "start_date",
                    "abstract_due_date", "abstract_due_date_status",
                    "late_breaking_due_date", "late_breaking_due_date_status"],
    "journals": ["id", "name", "updated_at"],
}


def from_sqlite(path):
    """Tables of a copy, all as they stand at one moment: conferences, journals, and whom and what conferences belong to."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)) as copy:
        copy.execute("BEGIN")  # What is read from here on is one state, whatever a pull writes meanwhile.
        return {
            "conferences": table(copy, "SELECT * FROM conferences"),
            "journals": table(copy, "SELECT * FROM journals"),
            "areas": table(copy, "SELECT conference_id, therapy_area FROM conference_therapy_areas"),
            "organizations": table(copy, "SELECT conference_id, name AS organization FROM conference_organizations "
                                         "JOIN organizations ON organizations.id = organization_id"),
        }


def table(copy, query):
    return typed(pd.read_sql_query(query, copy, dtype_backend="numpy_nullable"))


def from_folder(path):
    """The same from JSON lines. Each file is replaced whole, so what is read of one is one state."""
    conferences, journals = records(path, "conferences"), records(path, "journals")
    links = conferences.rename(columns={"id": "conference_id", "therapy_areas": "therapy_area"})
    organizations = links.explode("organizations").dropna(subset="organizations")
    return {
        "conferences": typed(conferences),
        "journals": typed(journals),
        "areas": links[["conference_id", "therapy_area"]].explode("therapy_area").dropna(),
        "organizations": organizations.assign(organization=organizations["organizations"].str["name"])[
            ["conference_id", "organization"]],
    }


def records(path, dataset):
    """The records of a dataset. One that the license lacks has no file, so it has none."""
    file = path / f"{dataset}.jsonl"
    if not file.exists() or not file.stat().st_size:
        return pd.DataFrame(columns=COLUMNS[dataset])
    return pd.read_json(file, lines=True, dtype_backend="numpy_nullable")


def typed(frame):
    """Days and times as such, and flags as booleans."""
    for name in frame.columns.intersection([*DATES, "updated_at"]):
        frame[name] = pd.to_datetime(frame[name], utc=name == "updated_at")
    for name in frame.columns[frame.columns.str.startswith("formats_")]:
        frame[name] = frame[name].astype("boolean")
    return frame


def deadlines(copy, now):
    """Deadlines of the next 90 days by therapy area; conferences without one come first."""
    kinds = {"abstract_due_date": "abstract", "late_breaking_due_date": "late-breaking"}
    conferences = copy["conferences"]
    all = pd.concat([
        conferences.assign(kind=kind, due_date=conferences[name], status=conferences[f"{name}_status"])
        for name, kind in kinds.items()
    ])
    today = now.tz_localize(None).normalize()
    all = all[all["due_date"].between(today, today + pd.Timedelta(days=90))]
    all = all.merge(copy["areas"], how="left", left_on="id", right_on="conference_id")
    all = all.assign(days_left=(all["due_date"] - today).dt.days, therapy_area=all["therapy_area"].fillna(""))
    all = all.sort_values(["therapy_area", "due_date", "id", "kind"])
    return all[["therapy_area", "due_date", "days_left", "kind", "status", "id", "name"]]


def changes(copy, now):
    """Records whose content changed within a day. What a wider license brought in is not among them, nor what was removed."""
    both = pd.concat([copy[dataset].assign(dataset=dataset) for dataset in ["conferences", "journals"]])
    both = both[both["updated_at"] >= now - pd.Timedelta(days=1)].sort_values(["dataset", "id"])
    return both[["dataset", "id", "name", "updated_at"]]


def organizations(copy, now):
    """How many conferences each organization has, how many of them are to come, and when the next one starts."""
    links = copy["organizations"].merge(copy["conferences"], left_on="conference_id", right_on="id")
    links["next_start"] = links["start_date"].where(links["start_date"] >= now.tz_localize(None).normalize())
    found = links.groupby("organization").agg(
        conferences=("id", "count"), upcoming=("next_start", "count"), next_start=("next_start", "min"))
    return found.sort_index().reset_index()


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(f"usage: {sys.argv[0]} COPY [NOW]")
    path = Path(sys.argv[1])
    now = pd.Timestamp(sys.argv[2]).tz_convert("UTC") if len(sys.argv) == 3 else pd.Timestamp.now("UTC")
    copy = from_folder(path) if path.is_dir() else from_sqlite(path)
    for question in [deadlines, changes, organizations]:
        print(f"# {question.__name__}")
        print(question(copy, now).to_csv(index=False))


if __name__ == "__main__":
    main()
