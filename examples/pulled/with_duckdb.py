#!/usr/bin/env python3
"""The usual questions with DuckDB, asked of the JSON lines in a folder that `medfeed pull` keeps.

    python3 with_duckdb.py folder/
    python3 with_duckdb.py folder/ 2026-03-01T00:00:00Z     # as if it were then
"""

import csv
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb

# The columns that the questions need; times are UTC. Each file is replaced whole, and read once here: so it is one state.
TABLES = {
    "conferences": {
        "id": "BIGINT", "name": "VARCHAR", "start_date": "DATE", "updated_at": "TIMESTAMP", "therapy_areas": "VARCHAR[]",
        "abstract_due_date": "DATE", "abstract_due_date_status": "VARCHAR",
        "late_breaking_due_date": "DATE", "late_breaking_due_date_status": "VARCHAR",
        "organizations": "STRUCT(id BIGINT, name VARCHAR)[]",
    },
    "journals": {"id": "BIGINT", "name": "VARCHAR", "updated_at": "TIMESTAMP"},
}

QUESTIONS = {
    # Deadlines of the next 90 days by therapy area; conferences without one come first.
    "deadlines": """
        WITH deadlines AS (
            SELECT *, abstract_due_date AS due_date, 'abstract' AS kind, abstract_due_date_status AS status FROM conferences
            UNION ALL
            SELECT *, late_breaking_due_date, 'late-breaking', late_breaking_due_date_status FROM conferences)
        SELECT unnest(CASE WHEN len(therapy_areas) = 0 THEN [''] ELSE therapy_areas END) AS therapy_area,
            due_date, due_date - $today AS days_left, kind, status, id, name
        FROM deadlines WHERE due_date BETWEEN $today AND $today + 90 ORDER BY therapy_area, due_date, id, kind""",
    # Records whose content changed within a day. What a wider license brought in is not among them, nor what was removed.
    "changes": """
        SELECT 'conferences' AS dataset, id, name, updated_at FROM conferences WHERE updated_at >= $yesterday
        UNION ALL SELECT 'journals', id, name, updated_at FROM journals WHERE updated_at >= $yesterday
        ORDER BY dataset, id""",
    # How many conferences each organization has, how many of them are to come, and when the next one starts.
    "organizations": """
        WITH links AS (SELECT unnest(organizations).name AS organization, start_date FROM conferences)
        SELECT organization, count(*) AS conferences, count(*) FILTER (start_date >= $today) AS upcoming,
            min(start_date) FILTER (start_date >= $today) AS next_start
        FROM links GROUP BY organization ORDER BY organization""",
}


def read(folder):
    """A database in memory with the tables of a copy. A dataset that the license lacks has no file: its table is empty."""
    copy = duckdb.connect()
    for name, columns in TABLES.items():
        file = folder / f"{name}.jsonl"
        if file.exists():
            copy.read_json(str(file), format="newline_delimited", columns=columns).create(name)
        else:
            copy.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {type}' for column, type in columns.items())})")
    return copy


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(f"usage: {sys.argv[0]} FOLDER [NOW]")
    now = datetime.fromisoformat(sys.argv[2]).astimezone(timezone.utc) if len(sys.argv) == 3 else datetime.now(timezone.utc)
    copy = read(Path(sys.argv[1]))
    values = {"today": now.date(), "yesterday": now.replace(tzinfo=None) - timedelta(days=1)}
    for name, query in QUESTIONS.items():
        answer = copy.execute(query, {key: value for key, value in values.items() if f"${key}" in query})
        print(f"# {name}")
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(column[0] for column in answer.description)
        out.writerows(answer.fetchall())
        print()


if __name__ == "__main__":
    main()
