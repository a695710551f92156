#!/usr/bin/env python3
"""Writes a calendar of deadlines and meetings from a copy that `medfeed pull` keeps.

    medfeed pull https://feed.example.org --to copy.sqlite
    python3 deadlines.py copy.sqlite deadlines.ics [--ids 12,40] [--reminder 7]

Put the file where a web server of yours serves it, and let colleagues subscribe to its address. Events have the same
identifiers as those of the page's calendar files, so both renew each other. The file is replaced as a whole.
"""

import argparse
import datetime
import os
import sqlite3
import sys

# The first column of each event identifies it, together with the record.
EVENTS = [
    ("abstract_due_date", "abstract_due_date_status", "Abstracts due: "),
    ("late_breaking_due_date", "late_breaking_due_date_status", "Late-breaking abstracts due: "),
    ("start_date", "start_date_status", ""),
]


def escape(text):
    """A text as a property value."""
    for mark in "\\;,":
        text = text.replace(mark, "\\" + mark)
    text = text.replace("\r\n", "\\n").replace("\n", "\\n")
    return "".join(letter for letter in text if letter >= " " and letter != "\x7f")


def fold(line):
    """A line in pieces of at most 75 bytes. No character is cut."""
    pieces, piece = [], ""
    for letter in line:
        if len((piece + letter).encode()) > 75:
            pieces.append(piece)
            piece = " "
        piece += letter
    return "\r\n".join([*pieces, piece]) + "\r\n"


def event(record, column, status, title, stamp, reminder):
    first = datetime.date.fromisoformat(record[column])
    last = first
    if column == "start_date" and record["end_date"]:
        last = max(first, datetime.date.fromisoformat(record["end_date"]))
    changed = datetime.datetime.fromisoformat(record["updated_at"].replace("Z", "+00:00"))
    name = " ".join(str(part) for part in (record["abbv"] or record["name"], record["year"]) if part)
    sure = record[status] == "confirmed"
    summary = escape(title + name + ("" if sure else f" ({(record[status] or 'no status').replace('_', ' ')})"))
    place = ", ".join(part for part in (record["venue"], record["city"], record["country"]) if part)
    lines = [
        "BEGIN:VEVENT",
        f"UID:conferences-{record['id']}-{column}@medfeed",
        f"DTSTAMP:{stamp}",
        f"SEQUENCE:{int(changed.timestamp())}",
        f"LAST-MODIFIED:{changed.astimezone(datetime.timezone.utc):%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{first:%Y%m%d}",
        f"SUMMARY:{summary}",
        f"DESCRIPTION:{escape(record['name'])}",
        f"STATUS:{'CONFIRMED' if sure else 'TENTATIVE'}",
        "TRANSP:TRANSPARENT",
    ]
    if last < datetime.date.max:
        lines.insert(6, f"DTEND;VALUE=DATE:{last + datetime.timedelta(days=1):%Y%m%d}")
    if place:
        lines.append(f"LOCATION:{escape(place)}")
    if reminder:
        lines += ["BEGIN:VALARM", "ACTION:DISPLAY", f"DESCRIPTION:{summary}", f"TRIGGER:-P{reminder}D", "END:VALARM"]
    return [*lines, "END:VEVENT"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("copy", help="the SQLite file of `medfeed pull`")
    parser.add_argument("calendar", help="the file to write")
    parser.add_argument("--ids", help="only these records, such as 12,40")
    parser.add_argument("--reminder", type=int, default=0, help="days before each event")
    given = parser.parse_args()
    if not os.path.exists(given.copy):
        sys.exit(f"{given.copy} does not exist. Run `medfeed pull ADDRESS --to {given.copy}` first.")
    ids = {int(one) for one in given.ids.split(",")} if given.ids else None
    copy = sqlite3.connect(given.copy)
    copy.row_factory = sqlite3.Row
    today = datetime.date.today().isoformat()
    stamp = f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}"
    lines, count = [], 0
    for record in copy.execute("SELECT * FROM conferences ORDER BY id"):
        for column, status, title in EVENTS:
            end = record["end_date"] if column == "start_date" else None
            if record[column] and max(record[column], end or "") >= today and (ids is None or record["id"] in ids):
                lines += event(record, column, status, title, stamp, given.reminder)
                count += 1
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//medfeed//calendar//EN", "CALSCALE:GREGORIAN", "X-WR-CALNAME:Deadlines", "REFRESH-INTERVAL;VALUE=DURATION:PT12H"]
    text = "".join(fold(line) for line in [*head, *lines, "END:VCALENDAR"])
    # A reader never sees half a file.
    with open(given.calendar + ".new", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.replace(given.calendar + ".new", given.calendar)
    print(f"{given.calendar}: {count} events")


if __name__ == "__main__":
    main()
