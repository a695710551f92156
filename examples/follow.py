#!/usr/bin/env python3
"""Keeps a copy of one dataset of a medfeed service in an SQLite file, with what Python brings along.

    MEDFEED_KEY=mfk_... python3 follow.py https://feed.example.org conferences conferences.sqlite

Each run brings the copy up to date and ends; cron or a systemd timer runs it again. The first run loads the export, later
ones ask for what changed since the saved token. A page and the token that follows it are saved in one transaction, so a run
that is killed loses nothing, and the next one goes on where it stopped.

Table `records` holds the records: `id`, and `json` as the service sent it.
"""

import gzip
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


class Gone(Exception):
    """The saved token is no longer usable: the license changed, or the service was restored from a backup."""


def get(url, key):
    """Sends a request, again after the given time while the rate limit is used up; returns headers and body."""
    while True:
        try:
            request = urllib.request.Request(url, headers={"X-API-Key": key})
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.headers, response.read()
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise Gone from error
            if error.code != 429:
                raise SystemExit(f"{url}: {error.code} {error.read().decode(errors='replace')}") from error
            time.sleep(int(error.headers.get("Retry-After", "1")))


def load(base, dataset, key, copy):
    """Replaces the copy by the export; returns how many records it holds."""
    headers, body = get(f"{base}/v1/exports/{dataset}?format=jsonl", key)
    records = [json.loads(line) for line in gzip.decompress(body).splitlines()]
    with copy:
        copy.execute("DELETE FROM records")
        copy.executemany("INSERT INTO records VALUES (?, ?)", ((row["id"], json.dumps(row)) for row in records))
        copy.execute("REPLACE INTO state VALUES ('token', ?)", (headers["X-Sync-Token"],))
    return len(records)


def follow(base, dataset, key, copy):
    """Applies what changed since the saved token; returns how many changes that were."""
    applied, has_more = 0, True
    while has_more:
        (token,) = copy.execute("SELECT value FROM state WHERE name = 'token'").fetchone()
        _, body = get(f"{base}/v1/{dataset}/changes?since={urllib.parse.quote(token)}", key)
        page = json.loads(body)
        with copy:
            for row in page["data"]:
                if row.get("deleted"):
                    copy.execute("DELETE FROM records WHERE id = ?", (row["id"],))
                else:
                    copy.execute("REPLACE INTO records VALUES (?, ?)", (row["id"], json.dumps(row)))
            copy.execute("REPLACE INTO state VALUES ('token', ?)", (page["next_sync_token"],))
        applied, has_more = applied + len(page["data"]), page["has_more"]
    return applied


def main():
    if len(sys.argv) != 4 or "MEDFEED_KEY" not in os.environ:
        raise SystemExit("usage: MEDFEED_KEY=KEY follow.py URL DATASET FILE")
    base, dataset, file = sys.argv[1].rstrip("/"), sys.argv[2], sys.argv[3]
    key = os.environ["MEDFEED_KEY"]
    copy = sqlite3.connect(file)
    with copy:
        copy.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, json TEXT NOT NULL)")
        copy.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    try:
        if copy.execute("SELECT 1 FROM state WHERE name = 'token'").fetchone() is None:
            print(f"{load(base, dataset, key, copy)} records loaded")
        else:
            print(f"{follow(base, dataset, key, copy)} changes applied")
    except Gone:
        print(f"{load(base, dataset, key, copy)} records loaded anew")


if __name__ == "__main__":
    main()
