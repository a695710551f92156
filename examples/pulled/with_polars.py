#!/usr/bin/env python3
"""The usual questions with polars, asked of a copy that `medfeed pull` keeps: an SQLite file, or a folder.

    python3 with_polars.py copy.sqlite
    python3 with_polars.py folder/ 2026-03-01T00:00:00Z     # as if it were then
"""

import sqlite3
import sys
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import polars as pl

DATES = ["start_date", "end_date", "abstract_due_date", "late_breaking_due_date"]
# The columns that the questions need, also where a dataset has no records.
COLUMNS = {
    "conferences": {
        "id": pl.Int64, "name": pl.String, "updated_at": pl.String, "start_date": pl.String,
        "abstract_due_date": pl.String, "abstract_due_date_status": pl.String,
        "late_breaking_due_date": pl.String, "late_breaking_due_date_status": pl.String,
        "therapy_areas": pl.List(pl.String),
        "organizations": pl.List(pl.Struct({"id": pl.Int64, "name": pl.String})),
    },
    "journals": {"id": pl.Int64, "name": pl.String, "updated_at": pl.String},
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
    # SQLite does not tell the types of a table without rows.
    types = {"conference_id": pl.Int64, "therapy_area": pl.String, "organization": pl.String, **COLUMNS["conferences"]}
    return typed(pl.read_database(query, copy, infer_schema_length=None, schema_overrides=types))


def from_folder(path):
    """The same from JSON lines. Each file is replaced whole, so what is read of one is one state."""
    conferences, journals = records(path, "conferences"), records(path, "journals")
    links = conferences.rename({"id": "conference_id"})
    areas = links.select("conference_id", therapy_area="therapy_areas").explode("therapy_area").drop_nulls()
    organizations = links.select("conference_id", organization="organizations").explode("organization").drop_nulls()
    return {
        "conferences": typed(conferences),
        "journals": typed(journals),
        "areas": areas,
        "organizations": organizations.with_columns(organization=pl.col("organization").struct.field("name")),
    }


def records(path, dataset):
    """The records of a dataset. One that the license lacks has no file, so it has none."""
    file = path / f"{dataset}.jsonl"
    if not file.exists() or not file.stat().st_size:
        return pl.DataFrame(schema=COLUMNS[dataset])
    return pl.read_ndjson(file, infer_schema_length=None, schema_overrides=COLUMNS[dataset])


def typed(frame):
    """Days and times as such, and flags as booleans."""
    return frame.with_columns(
        *(pl.col(name).cast(pl.String).str.to_date() for name in DATES if name in frame.columns),
        *(pl.col(name).str.to_datetime(time_zone="UTC") for name in ["updated_at"] if name in frame.columns),
        *(pl.col(name).cast(pl.Boolean) for name in frame.columns if name.startswith("formats_")),
    )


def deadlines(copy, now):
    """Deadlines of the next 90 days by therapy area; conferences without one come first."""
    kinds = {"abstract_due_date": "abstract", "late_breaking_due_date": "late-breaking"}
    all = pl.concat(
        copy["conferences"].select("id", "name", due_date=name, status=f"{name}_status", kind=pl.lit(kind))
        for name, kind in kinds.items()
    )
    return (
        all.filter(pl.col("due_date").is_between(now.date(), now.date() + timedelta(days=90)))
        .join(copy["areas"], how="left", left_on="id", right_on="conference_id")
        .with_columns(pl.col("therapy_area").fill_null(""), days_left=(pl.col("due_date") - now.date()).dt.total_days())
        .sort("therapy_area", "due_date", "id", "kind")
        .select("therapy_area", "due_date", "days_left", "kind", "status", "id", "name")
    )


def changes(copy, now):
    """Records whose content changed within a day. What a wider license brought in is not among them, nor what was removed."""
    both = pl.concat(
        copy[dataset].select("id", "name", "updated_at", dataset=pl.lit(dataset)) for dataset in ["conferences", "journals"]
    )
    recent = both.filter(pl.col("updated_at") >= now - timedelta(days=1))
    return recent.sort("dataset", "id").select("dataset", "id", "name", "updated_at")


def organizations(copy, now):
    """How many conferences each organization has, how many of them are to come, and when the next one starts."""
    links = copy["organizations"].join(copy["conferences"], left_on="conference_id", right_on="id")
    to_come = pl.col("start_date").filter(pl.col("start_date") >= now.date())
    return links.group_by("organization").agg(
        conferences=pl.len(), upcoming=to_come.len(), next_start=to_come.min()).sort("organization")


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(f"usage: {sys.argv[0]} COPY [NOW]")
    path = Path(sys.argv[1])
    now = datetime.fromisoformat(sys.argv[2]).astimezone(timezone.utc) if len(sys.argv) == 3 else datetime.now(timezone.utc)
    copy = from_folder(path) if path.is_dir() else from_sqlite(path)
    for question in [deadlines, changes, organizations]:
        print(f"# {question.__name__}")
        print(question(copy, now).write_csv())


if __name__ == "__main__":
    main()
