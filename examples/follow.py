#!/usr/bin/env python3
"""Keeps a copy of one dataset of a medfeed service in an SQLite file, with what Python brings along.

    MEDFEED_KEY=mfk_... python3 follow.py https://feed.example.org conferences conferences.sqlite

Each run brings the copy up to date and ends; cron or a systemd timer runs it again. With --every 60 it goes on and has news at
once. The first run loads the export, later ones ask for what changed since the saved token. Records and token are saved in
one transaction, so a run that is killed loses nothing, and the next one goes on where it stopped.

Table `records` holds the records: `id`, and `json` as the service sent it, to the byte. With --verify they are compared with
the service's by a digest, and loaded anew if they differ. When the license loses the dataset, the records are removed. The
key is sent to the given address alone: redirects are refused.
"""

import argparse
import base64
import email.utils
import gzip
import hashlib
import http.client
import json
import os
import sqlite3
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

ATTEMPTS = 8  # With the pauses between them, two minutes: longer than a restart of the service takes.
MAX_PAUSE_S = 60
MAX_WAIT_S = 45  # The service holds an empty page back for so long. Many proxies end a request after 60 seconds.


class Gone(Exception):
    """The saved token is no longer usable: the service was restored from a backup, say."""


class Failed(Exception):
    """The service cannot be reached, or refused the request; says so in one line."""


class NotLicensed(Failed):
    """The license does not have the dataset."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would be sent along, to whatever host."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirects)


def get(url, key, method="GET"):
    """Sends a request; returns headers and body. A lost connection, a busy or a failing service is asked again, after the
    time that it names or after growing pauses."""
    request = urllib.request.Request(url, headers={"X-API-Key": key}, method=method)
    for attempt in range(ATTEMPTS):
        pause_s = 2**attempt
        try:
            with OPENER.open(request, timeout=MAX_WAIT_S + 30) as response:
                return response.headers, response.read()
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise Gone from None
            target = error.headers.get("Location")
            if error.code < 400 and target:
                target = urllib.parse.urljoin(url, target).split("/v1/")[0]
                raise Failed(f"{url}: the service redirects to {target}; use that address if you trust it") from None
            trouble, code = told(error)
            if error.code == 403 and code == "dataset_not_licensed":
                raise NotLicensed(f"{url}: {trouble}") from None
            if error.code != 429 and error.code < 500:
                raise Failed(f"{url}: {trouble}") from None
            pause_s = asked_pause_s(error.headers, pause_s)
        except (OSError, http.client.HTTPException) as error:
            trouble = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < ATTEMPTS:
            time.sleep(min(pause_s, MAX_PAUSE_S))
    raise Failed(f"{url}: {trouble}; gave up after {ATTEMPTS} attempts")


def asked_pause_s(headers, default_s):
    """The pause that `Retry-After` names: seconds, or a time by the clock of the service."""
    after = headers.get("Retry-After", "")
    if after.isdecimal():
        return int(after)
    at = email.utils.parsedate_tz(after)
    sent = email.utils.parsedate_tz(headers.get("Date", ""))
    if not at:
        return default_s
    return max(0, email.utils.mktime_tz(at) - (email.utils.mktime_tz(sent) if sent else time.time()))


def told(error):
    """What an error answer says, in one line, and its code."""
    try:
        problem = json.loads(error.read())
        text = f"{error.code} {problem['detail']} (request {problem['request_id']})"
        return text, problem["type"].rsplit("/errors/", 1)[-1]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return f"{error.code} {error.reason}, without the explanation of a medfeed service", None


def digest(lines):
    """What `X-Records-Digest` says of these lines."""
    sha256 = hashlib.sha256()
    for line in lines:
        sha256.update(line.encode() + b"\n")
    return f"sha-256=:{base64.b64encode(sha256.digest()).decode()}:"


def saved(copy, name):
    """The token or the dataset of the copy; None while there is none."""
    return next(copy.execute("SELECT value FROM state WHERE name = ?", (name,)), [None])[0]


def save(copy, dataset, token):
    copy.executemany("REPLACE INTO state VALUES (?, ?)", [("dataset", dataset), ("token", token)])


def load(base, dataset, key, copy):
    """Replaces the copy by the export; returns how many records it holds."""
    headers, body = get(f"{base}/v1/exports/{dataset}?format=jsonl", key)
    lines = gzip.decompress(body).decode().split("\n")[:-1]
    expected = int(headers["X-Record-Count"])
    if len(lines) != expected:
        raise Failed(f"the export holds {len(lines)} records instead of {expected}; the copy is left as it was")
    if digest(lines) != headers.get("X-Records-Digest", digest(lines)):  # An older service tells none.
        raise Failed("the export was changed on its way: its digest is another; the copy is left as it was")
    with copy:
        copy.execute("DELETE FROM records")
        copy.executemany("INSERT INTO records VALUES (?, ?)", ((json.loads(line)["id"], line) for line in lines))
        save(copy, dataset, headers["X-Sync-Token"])
    return len(lines)


def clear(copy):
    """Removes the records and their state, when the license has lost the dataset; returns how many records there were."""
    with copy:
        copy.execute("DELETE FROM state")
        return copy.execute("DELETE FROM records").rowcount


def entries(page):
    """The entries of a page of the feed, each with its text: a number that is written anew may be written otherwise."""
    at = page.index("[") + 1
    while page[at] != "]":
        row, end = json.JSONDecoder().raw_decode(page, at)
        yield row, page[at:end]
        at = end + (page[end] == ",")


def follow(base, dataset, key, copy, wait_s):
    """Applies what changed since the saved token, what a change of the license brought or took away, and, with a wait, what
    changes until then. Returns how many changes."""
    applied, has_more = 0, True
    while has_more:
        query = {"since": saved(copy, "token"), "resync": "diff"} | ({"wait": wait_s} if wait_s else {})
        query = urllib.parse.urlencode(query)
        body = get(f"{base}/v1/{dataset}/changes?{query}", key)[1].decode()
        page = json.loads(body)
        with copy:
            for row, text in entries(body):
                if row.get("deleted"):
                    copy.execute("DELETE FROM records WHERE id = ?", (row["id"],))
                else:
                    copy.execute("REPLACE INTO records VALUES (?, ?)", (row["id"], text))
            save(copy, dataset, page["next_sync_token"])
        applied, has_more = applied + len(page["data"]), page["has_more"]
    return applied


def is_equal(base, dataset, key, copy):
    """Whether the copy is what the service has; None when that has changed since."""
    headers, _ = get(f"{base}/v1/exports/{dataset}", key, "HEAD")
    if "X-Records-Digest" not in headers:
        raise Failed(f"{base} does not tell what its records come to, so the copy cannot be compared")
    if headers["X-Records-Digest"] == digest(line for (line,) in copy.execute("SELECT json FROM records ORDER BY id")):
        return True
    return False if headers["X-Sync-Token"] == saved(copy, "token") else None


def update(*args):
    """Brings the copy up to date; returns what was done. When the service says twice that the license does not have the
    dataset, its records have left like any others: they are removed."""
    try:
        return try_update(*args)
    except NotLicensed:
        pass
    try:
        return try_update(*args)
    except NotLicensed as error:
        count = clear(args[3])
        raise Failed(f"{error}; {count} records removed from the copy" if count else str(error)) from None


def try_update(base, dataset, key, copy, wait_s=0, verify=False):
    try:
        try:
            if saved(copy, "token") is None:
                return f"{load(base, dataset, key, copy)} records loaded"
            told = f"{follow(base, dataset, key, copy, wait_s)} changes applied"
            if not verify:
                return told
            equal = is_equal(base, dataset, key, copy)
            if equal is False:
                return f"{told}; the copy differs: {load(base, dataset, key, copy)} records loaded anew"
            return f"{told}; " + ("equal to the service's" if equal else "not compared: the service went on meanwhile")
        except Gone:
            return f"{load(base, dataset, key, copy)} records loaded anew"
    except (Gone, EOFError, OSError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise Failed(f"{base}: the answer is not one of a medfeed service ({error!r}); check the URL") from None


def shown(error):
    """An error in one line. What a service sends must not control the terminal."""
    text = f"the copy cannot be written: {error}" if isinstance(error, sqlite3.Error) else str(error)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def main():
    parser = argparse.ArgumentParser(description="Keeps a copy of a dataset of a medfeed service in an SQLite file.")
    parser.add_argument("url", help="the address of the service, without /v1")
    parser.add_argument("dataset", choices=["conferences", "journals"])
    parser.add_argument("file", help="the SQLite file; it is made when it is not there")
    parser.add_argument("--every", type=int, metavar="SECONDS", help="go on: news at once, a look at least this often")
    parser.add_argument("--verify", action="store_true", help="compare the copy with the service, and mend it")
    given = parser.parse_args()
    key = os.environ.get("MEDFEED_KEY", "").strip()
    if not key:
        parser.error("put the API key into the environment variable MEDFEED_KEY")
    if not (key.isascii() and key.isprintable()):  # `http.client` would show the key in its error.
        parser.error("MEDFEED_KEY holds characters that no key has")
    copy = sqlite3.connect(os.path.join(os.curdir, given.file))  # SQLite reads a name such as `file:x` as an address.
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
    tables = {name for (name,) in copy.execute(tables)}
    if tables not in (set(), {"records", "state"}):
        raise SystemExit(f"error: {given.file} holds other tables; give another file")
    with copy:
        copy.execute("BEGIN")  # Else each table has a transaction of its own.
        copy.execute("CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, json TEXT NOT NULL)")
        copy.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    held = saved(copy, "dataset")
    if held not in (None, given.dataset):
        raise SystemExit(f"error: {given.file} is a copy of {held}, not of {given.dataset}; give another file")
    wait_s = min(given.every or 0, MAX_WAIT_S)
    while True:
        begun, told = time.monotonic(), ""
        try:
            told = update(given.url.rstrip("/"), given.dataset, key, copy, wait_s, given.verify)
            print(told, flush=True)
        except (Failed, sqlite3.Error) as error:
            if given.every is None:
                raise
            print(f"error: {shown(error)}", file=sys.stderr, flush=True)
        if given.every is None:
            return
        elapsed = time.monotonic() - begun
        # An empty page may come early, when too many wait.
        is_next = told and (not told.startswith("0 ") or elapsed >= wait_s)
        time.sleep(1 if is_next else max(1, given.every - elapsed))


if __name__ == "__main__":
    try:
        main()
    except (Failed, sqlite3.Error) as error:
        raise SystemExit(f"error: {shown(error)}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
