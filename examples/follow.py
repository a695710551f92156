#!/usr/bin/env python3
"""Keeps a copy of one dataset of a medfeed service in an SQLite file, with what Python brings along.

    MEDFEED_KEY=mfk_... python3 follow.py https://feed.example.org conferences conferences.sqlite

Each run brings the copy up to date and ends; cron or a systemd timer runs it again, or --every 60 does. The first run loads
the export, later ones ask for what changed since the saved token. Records and token are saved in one transaction, so a run
that is killed loses nothing, and the next one goes on where it stopped.

Table `records` holds the records: `id`, and `json` as the service sent it.
"""

import argparse
import gzip
import http.client
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ATTEMPTS = 8  # With the pauses between them, two minutes: longer than a restart of the service takes.
MAX_PAUSE_S = 60


class Gone(Exception):
    """The saved token is no longer usable: the license changed, or the service was restored from a backup."""


class Failed(Exception):
    """The service cannot be reached, or refused the request; says so in one line."""


def get(url, key):
    """Sends a request; returns headers and body. A lost connection, a busy or a failing service is asked again, after the
    time that it names or after growing pauses."""
    request = urllib.request.Request(url, headers={"X-API-Key": key})
    for attempt in range(ATTEMPTS):
        pause_s = 2**attempt
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.headers, response.read()
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise Gone from None
            trouble = told(error)
            if error.code != 429 and error.code < 500:
                raise Failed(f"{url}: {trouble}") from None
            after = error.headers.get("Retry-After", "")
            pause_s = int(after) if after.isdecimal() else pause_s
        except (OSError, http.client.HTTPException) as error:
            trouble = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < ATTEMPTS:
            time.sleep(min(pause_s, MAX_PAUSE_S))
    raise Failed(f"{url}: {trouble}; gave up after {ATTEMPTS} attempts")


def told(error):
    """What an error answer says, in one line."""
    try:
        problem = json.loads(error.read())
        return f"{error.code} {problem['detail']} (request {problem['request_id']})"
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"


def load(base, dataset, key, copy):
    """Replaces the copy by the export; returns how many records it holds."""
    headers, body = get(f"{base}/v1/exports/{dataset}?format=jsonl", key)
    records = [json.loads(line) for line in gzip.decompress(body).splitlines()]
    expected = int(headers["X-Record-Count"])
    if len(records) != expected:
        raise Failed(f"the export holds {len(records)} records instead of {expected}; the copy is left as it was")
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


def update(base, dataset, key, copy):
    """Brings the copy up to date; returns what was done."""
    try:
        if copy.execute("SELECT 1 FROM state WHERE name = 'token'").fetchone() is None:
            return f"{load(base, dataset, key, copy)} records loaded"
        return f"{follow(base, dataset, key, copy)} changes applied"
    except Gone:
        return f"{load(base, dataset, key, copy)} records loaded anew"
    except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
        raise Failed(f"{base}: the answer is not one of a medfeed service ({error!r}); check the URL") from None


def main():
    parser = argparse.ArgumentParser(description="Keeps a copy of a dataset of a medfeed service in an SQLite file.")
    parser.add_argument("url", help="the address of the service, without /v1")
    parser.add_argument("dataset", choices=["conferences", "journals"])
    parser.add_argument("file", help="the SQLite file; it is made when it is not there")
    parser.add_argument("--every", type=int, metavar="SECONDS", help="go on, with this pause between updates")
    given = parser.parse_args()
    key = os.environ.get("MEDFEED_KEY")
    if not key:
        parser.error("put the API key into the environment variable MEDFEED_KEY")
    copy = sqlite3.connect(given.file)
    with copy:
        copy.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, json TEXT NOT NULL)")
        copy.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    while True:
        try:
            print(update(given.url.rstrip("/"), given.dataset, key, copy), flush=True)
        except Failed as error:
            if given.every is None:
                raise SystemExit(f"error: {error}") from None
            print(f"error: {error}", file=sys.stderr, flush=True)
        if given.every is None:
            return
        time.sleep(given.every)


if __name__ == "__main__":
    try:
        main()
    except sqlite3.Error as error:
        raise SystemExit(f"error: the copy cannot be written: {error}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
