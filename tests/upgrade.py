#!/usr/bin/env python3
"""Compares a new release with an old one over random histories. `tests/upgrade.sh` runs it, and says how.

With the old program each history makes a database: imports with changes, removals and the same ids again, licenses that change,
keys that are revoked, restores. Callers save tokens all along. Then the old program's answers are recorded, the new program
upgrades the file while the old server is asked again and again, and the new program's answers are compared. Last, both go on: a
further import is applied to a copy of the old file by the old program, too, and what callers hear by their tokens is compared.
At the end an origin with two replicas is upgraded while a customer asks.
"""

import collections
import contextlib
import gzip
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ONLY_OLD = bool(os.environ.get("ONLY_OLD"))
PATIENCE_S = 60
STEPS = 14
DATASETS = ("conferences", "journals")
AREAS = ("Oncology", "Cardiology", "Neurology", "Hématologie", "皮膚科")
COUNTRIES = ("Spain", "Türkiye", "Japan", "Côte d'Ivoire", "Chile")
NAMES = ("Congrès", "学術総会", "„Herz“", "A & B <c>", 'The "Q", \\ forum', "=SUM(A1)", "🫀 Summit")
HEADERS = ("content-type", "etag", "cache-control", "vary", "x-record-count", "x-records-digest", "x-sync-token", "www-authenticate")
COUNTS = collections.Counter()


def fail(what):
    raise SystemExit(f"error: {what}")


class Site:
    """A folder with a database."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.db = self.folder / "feed.redb"

    def run(self, program, *args, code=0):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEDFEED_")}
        environment["MEDFEED_DB"] = str(self.db)
        done = subprocess.run([program, *args], cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != code:
            fail(f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, program, *args):
        return json.loads(self.run(program, *args, "--json"))

    @contextlib.contextmanager
    def publish(self, program, bucket):
        """A publisher, until the end of the block."""
        args = [program, "publish", bucket, "--db", str(self.db), "--every", "0s", "--heartbeat", "1s"]
        with (self.folder / "publish.log").open("ab") as log:
            process = subprocess.Popen(args, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            if process.wait(PATIENCE_S) != 0:
                fail(f"the publisher ended with {process.returncode}: {(self.folder / 'publish.log').read_text()}")

    @contextlib.contextmanager
    def serve(self, program, *options):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEDFEED_")}
        environment["MEDFEED_DB"] = str(self.db)
        args = [program, "serve", "--listen", "127.0.0.1:0", "--log", "warn", "--public-url", "https://feed.example", *options]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(args, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            first = process.stdout.readline().strip()
            if not first.startswith("listening on "):
                fail(f"no server: {first}\n{(self.folder / 'log').read_text()}")
            yield first.removeprefix("listening on ")
        finally:
            process.terminate()
            if process.wait(PATIENCE_S) != 0:
                fail(f"the server ended with {process.returncode}")


def get(url, target, key=None, tags=None):
    """The status, the headers and the content of an answer, without what depends on the time of asking."""
    request = urllib.request.Request(url + target)
    if key:
        request.add_header("X-API-Key", key)
    if tags:
        request.add_header("If-None-Match", tags)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            status, headers, body = response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        status, headers, body = error.code, error.headers, error.read()
    is_export = target.startswith("/v1/exports/") and status == 200
    if is_export:
        body = gzip.decompress(body)
    if headers.get("x-request-id"):
        body = body.replace(headers["x-request-id"].encode(), b"-")
    if target == "/v1/status":
        body = body.replace(b'"time":"%s"' % json.loads(body)["time"].encode(), b'"time":"-"')
    # The tag of an export is the hash of compressed bytes, which may differ between releases.
    kept = {name: headers[name] for name in HEADERS if headers.get(name) and not (is_export and name == "etag")}
    return status, kept, body


class Caller:
    """Asks as a customer does, and keeps what it was answered."""

    def __init__(self, url, keys):
        self.url, self.keys, self.answers = url, keys, {}

    def ask(self, name, target, tags=None):
        answer = get(self.url, target, self.keys.get(name), tags)
        self.answers[(name, target, tags)] = answer
        return answer

    def page(self, name, target):
        status, _, body = self.ask(name, target)
        return json.loads(body) if status == 200 else None

    def walk(self, name, dataset, start):
        """The token at the end of a walk, and the entries by their ids; no token where the feed refuses."""
        target, entries = f"/v1/{dataset}/changes?{start}&limit=50", {}
        while page := self.page(name, target):
            for entry in page["data"]:
                if entry["id"] in entries:
                    fail(f"{entry['id']} comes twice by {target}")
                entries[entry["id"]] = entry
            if not page["has_more"]:
                return page["next_sync_token"], entries
            target = f"/v1/{dataset}/changes?since={page['next_sync_token']}&limit=50"
        return None, entries

    def everything(self, saved, instants):
        self.ask("", "/v1/status")
        self.ask("", "/v1/journals")
        # Keys that open nothing are asked with once: an address that tries many is refused for a while.
        unusable = {name for name in self.keys if self.ask(name, "/v1/reference/therapy-areas")[0] == 401}
        for name in self.keys.keys() - unusable:
            for dataset in DATASETS:
                target = f"/v1/{dataset}?limit=50"
                while page := self.page(name, target):
                    if not page["next_cursor"]:
                        break
                    target = f"/v1/{dataset}?limit=50&cursor={page['next_cursor']}"
                _, headers, _ = self.ask(name, f"/v1/{dataset}?limit=50")
                if "etag" in headers:
                    self.ask(name, f"/v1/{dataset}?limit=50", headers["etag"])
                for query in ("q=her", "q=%C3%A8s", *(f"updated_since={instant}" for instant in instants)):
                    self.ask(name, f"/v1/{dataset}?{query}")
                for identifier in range(1, 12):
                    self.ask(name, f"/v1/{dataset}/{identifier}")
                for file_format in ("jsonl", "csv"):
                    self.ask(name, f"/v1/exports/{dataset}?format={file_format}")
                for start in ("updated_since=2020-01-01", *(f"updated_since={instant}" for instant in instants)):
                    self.walk(name, dataset, start)
                self.ask(name, f"/v1/reference/tags?dataset={dataset}")
                self.ask(name, f"/v1/reference/organizations?dataset={dataset}")
            for query in ("year=2025", "country=Spain", "therapy_area=Oncology", "start_date_from=2025-01-01"):
                self.ask(name, f"/v1/conferences?{query}")
        for name, dataset, token in saved:
            if name in unusable:
                continue
            end, _ = self.walk(name, dataset, f"since={token}")
            if end is None:
                self.walk(name, dataset, f"resync=diff&since={token}")


def conference(rng, identifier):
    year = rng.randint(2023, 2027)
    dated = rng.random() < 0.7
    return {
        "id": identifier,
        "name": f"{rng.choice(NAMES)} {identifier}",
        "abbv": rng.choice((None, f"C{identifier}")),
        "year": rng.choice((None, year, year, year)),
        "start_date": f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}" if dated else None,
        "start_date_status": rng.choice(("confirmed", "estimated", "copied")) if dated else "not_found",
        "abstract_due_date_status": "check",
        "late_breaking_due_date_status": "not_found",
        "country": rng.choice((None, *COUNTRIES)),
        "city": rng.choice((None, "Łódź", "Ávila")),
        "venue": f"v{rng.random()}",
        "therapy_areas": rng.sample(AREAS, rng.randint(0, 3)),
        "organizations": sorted(rng.sample(range(1, 7), rng.randint(0, 2))),
        "tags": sorted(rng.sample(range(1, 7), rng.randint(0, 3))),
        "formats": {"oral": rng.choice((None, True, False)), "poster": rng.choice((None, True, False))},
    }


def journal(rng, identifier):
    return {
        "id": identifier,
        "name": f"{rng.choice(NAMES)} of Τests {identifier}",
        "abbv": rng.choice((None, f"J. {identifier}")),
        "impact_factor": rng.choice((None, rng.random() * 50)),
        "h_index": rng.choice((None, rng.randint(0, 2**53 - 1))),
        "publishing": {"access": rng.choice((None, "open", "hybrid", "subscription")), "apc_usd": rng.choice((None, 3000.5))},
        "timelines": {"online_submit_to_accept": {"min_weeks": rng.choice((None, 0.5, 6)), "max_weeks": None}},
        "organizations": sorted(rng.sample(range(1, 7), rng.randint(0, 2))),
        "tags": sorted(rng.sample(range(1, 7), rng.randint(0, 2))),
    }


MAKERS = {"conferences": conference, "journals": journal}


class History:
    """A database that the old program made at random."""

    def __init__(self, old, seed, records, folder):
        self.old, self.records, self.rng = old, records, random.Random(seed)
        self.site = Site(folder)
        self.keys, self.licenses, self.saved, self.instants = {}, [], [], []
        self.alive = {dataset: set() for dataset in DATASETS}
        self.has_backup = False

    def write(self, name, rows):
        path = self.site.folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    def counted(self, step):
        COUNTS[step] += 1

    def present(self, dataset):
        self.site.run(self.old, "export", "now")
        with (self.site.folder / "now" / f"{dataset}.jsonl").open() as lines:
            found = {json.loads(line)["id"] for line in lines}
        shutil.rmtree(self.site.folder / "now")
        return found

    def rows(self, dataset):
        """Changes, removals, new ids, and ids that were removed before."""
        rng, alive, rows = self.rng, self.alive[dataset], {}
        count = self.records if dataset == "conferences" else self.records // 3 + 1
        for identifier in rng.sample(range(1, count + 1), rng.randint(1, max(1, count // 3))):
            if identifier in alive and rng.random() < 0.25:
                rows[identifier] = {"id": identifier, "deleted": True}
                alive.discard(identifier)
                self.counted("removals")
            else:
                self.counted("changes" if identifier in alive else "records made")
                rows[identifier] = MAKERS[dataset](rng, identifier)
                alive.add(identifier)
        return list(rows.values())

    def begin(self):
        organizations = [{"id": n, "name": f"Société {n}", "abbv": None if n % 2 else f"S{n}", "type": "society"} for n in range(1, 7)]
        tags = [{"id": n, "type": ("audience", "topic-area")[n % 2], "name": f"Tag: {n} é"} for n in range(1, 7)]
        files = [self.write("organizations", organizations), self.write("tags", tags)]
        for dataset in DATASETS:
            count = self.records if dataset == "conferences" else self.records // 3 + 1
            self.alive[dataset] = set(range(1, count + 1, 2))
            files.append(self.write(dataset, [MAKERS[dataset](self.rng, n) for n in sorted(self.alive[dataset])]))
        self.site.run(self.old, "import", *files)
        for name in ("all", "a", "b", "c"):
            self.license(name)
            self.key(name, name)

    def scope(self, name):
        rng = self.rng
        if name == "all":
            return ["--dataset", "conferences", "--dataset", "journals"]
        args = ["--dataset", "conferences"]
        if rng.random() < 0.6:
            args += ["--dataset", "journals"]
        for option, values in (("--therapy-area", AREAS), ("--country", COUNTRIES), ("--year", (2024, 2025, 2026))):
            if rng.random() < 0.4:
                for value in rng.sample(values, rng.randint(1, 2)):
                    args += [option, str(value)]
        return args

    def license(self, name):
        self.site.run(self.old, "license", "set", name, *self.scope(name), "--widen", "--yes", "--rate-limit", "1000000")
        self.counted("license changes")

    def key(self, name, license_name, *settings):
        made = self.site.json(self.old, "key", "create", "--license", license_name, *settings)
        self.keys[name] = made["key"]
        return made["id"]

    def save(self):
        """Tokens at the end of the feed and in the middle of a walk."""
        with self.site.serve(self.old) as url:
            for name, key in self.keys.items():
                dataset = self.rng.choice(DATASETS)
                status, headers, _ = get(url, f"/v1/exports/{dataset}", key)
                if status == 200:
                    self.saved.append((name, dataset, headers["x-sync-token"]))
                    _, _, body = get(url, f"/v1/{dataset}/changes?updated_since=2020-01-01&limit=7", key)
                    self.saved.append((name, dataset, json.loads(body)["next_sync_token"]))
        commits = self.site.json(self.old, "log", "--limit", "1")["commits"]
        self.instants = [*self.instants, commits[0]["time"]][-2:]

    def step(self):
        rng = self.rng
        kind = rng.choice(("import", "import", "import", "link", "license", "license", "key", "remove", "backup", "restore", "compact"))
        if kind == "import":
            datasets = rng.sample(DATASETS, rng.randint(1, 2))
            files = [self.write(dataset, self.rows(dataset)) for dataset in datasets]
            self.site.run(self.old, "import", *files, "--allow-removals", "1000000")
        elif kind == "link":
            row = {"id": rng.randint(1, 6), "name": f"Société {rng.random()}"}
            self.site.run(self.old, "import", self.write("organizations", [row]))
        elif kind == "license":
            self.license(rng.choice("abc"))
        elif kind == "key":
            name = f"key {len(self.keys)}"
            identifier = self.key(name, rng.choice(("all", "a", "b", "c")), "--label", "Ünit", "--allow-ip", "127.0.0.0/8")
            if rng.random() < 0.5:
                self.site.run(self.old, "key", "revoke", identifier)
            elif rng.random() < 0.5:
                self.keys[f"{name}, new"] = self.site.json(self.old, "key", "replace", identifier)["key"]
        elif kind == "remove":
            name = f"gone {rng.randint(0, 2**32)}"
            self.license(name)
            self.key(name, name)
            self.site.run(self.old, "license", "remove", name, "--yes")
        elif kind == "backup":
            self.site.run(self.old, "backup", "backup.redb")
            self.has_backup = True
        elif kind == "restore":
            if not self.has_backup:
                return
            self.site.run(self.old, "restore", "backup.redb", "--yes")
            self.alive = {dataset: self.present(dataset) for dataset in DATASETS}
        else:
            self.site.run(self.old, "compact")
        self.counted(f"steps: {kind}")
        if rng.random() < 0.6:
            self.save()


class Asker(threading.Thread):
    """Asks the old server again and again; all answers are the same."""

    def __init__(self, url, key, target):
        super().__init__()
        self.url, self.key, self.target, self.stop, self.count, self.error = url, key, target, False, 0, None

    def run(self):
        expected = get(self.url, self.target, self.key)
        while not self.stop:
            try:
                found = get(self.url, self.target, self.key)
            except OSError as error:
                self.error = f"no answer: {error}"
                return
            if found != expected or found[0] != 200:
                self.error = f"another answer: {found}"
                return
            self.count += 1


class Customer(threading.Thread):
    """Asks one replica, and another if that does not answer. A request fails if none answers."""

    def __init__(self, urls, key):
        super().__init__()
        self.urls, self.key, self.stop, self.count, self.failed = urls, key, False, 0, []

    def run(self):
        while not self.stop:
            told = []
            for url in list(self.urls.values()):
                try:
                    status = get(url, "/v1/conferences?limit=3", self.key)[0]
                except OSError as error:
                    status = str(error)
                told.append(status)
                if status == 200:
                    self.count += 1
                    break
            else:
                self.failed.append(told)


def replicas(old, new, folder):
    """The origin is upgraded, then its two replicas, one after the other, while a customer asks."""
    sites = {name: Site(folder / name) for name in ("origin", "one", "two")}
    for site in sites.values():
        site.folder.mkdir()
    origin, bucket = sites["origin"], f"file://{folder / 'bucket'}"
    rng = random.Random(1)
    rows = {number: {**conference(rng, number), "organizations": [], "tags": []} for number in range(1, 200)}
    write = lambda: (origin.folder / "conferences.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    write()
    origin.run(old, "import", "conferences.jsonl")
    origin.run(old, "license", "set", "all", "--dataset", "conferences", "--dataset", "journals")
    key = origin.json(old, "key", "create", "--license", "all")["key"]
    urls = {}
    with contextlib.ExitStack() as every:
        publisher = every.enter_context(contextlib.ExitStack())
        publisher.enter_context(origin.publish(old, bucket))
        running = {}

        def start(name, program):
            running[name] = every.enter_context(contextlib.ExitStack())
            urls[name] = running[name].enter_context(sites[name].serve(program, "--from", bucket))

        def wait_for(what, ask):
            until = time.monotonic() + PATIENCE_S
            while not ask():
                if time.monotonic() > until:
                    fail(f"not within {PATIENCE_S} s: {what}")
                time.sleep(0.05)

        wait_for("a state in the bucket", lambda: list((folder / "bucket").glob("states/*")))
        for name in ("one", "two"):
            start(name, old)
        token = get(urls["one"], "/v1/exports/conferences", key)[1]["x-sync-token"]
        customers = [Customer(urls, key) for _ in range(4)]
        for customer in customers:
            customer.start()
        publisher.close()
        origin.run(new, "upgrade")
        publisher = every.enter_context(contextlib.ExitStack())
        publisher.enter_context(origin.publish(new, bucket))
        rows[7]["venue"] = "after the upgrade"
        write()
        origin.run(new, "import", "conferences.jsonl", "--publish-wait", "30s")
        for name in ("one", "two"):
            urls.pop(name)
            running[name].close()
            start(name, new)

            def changed():
                status, _, body = get(urls[name], f"/v1/conferences/changes?since={token}", key)
                return status == 200 and [row["id"] for row in json.loads(body)["data"]] == [7]

            wait_for(f"replica {name} has the change, by the token of before", changed)
        for customer in customers:
            customer.stop = True
            customer.join()
            if customer.failed:
                fail(f"requests failed while replicas were upgraded: {customer.failed[:5]}")
            COUNTS["requests while replicas were upgraded, none failed"] += customer.count
    origin.run(new, "check", "--from", bucket)


def same(what, expected, found):
    """Fails unless two sets of answers are the same."""
    if expected.keys() != found.keys():
        fail(f"{what}: other requests: {list(expected.keys() ^ found.keys())[:5]}")
    for request, answer in expected.items():
        if found[request] != answer:
            fail(f"{what}: {request}\n  old {answer}\n  new {found[request]}"[:4000])
        COUNTS["answers compared"] += 1
        COUNTS[f"answers with status {answer[0]}"] += 1
        COUNTS["bytes compared"] += len(answer[2])


def digests(site, program):
    """The hashes of exported files, with which licenses and keys are compared too."""
    site.run(program, "export", "exported")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (site.folder / "exported").iterdir()}
    shutil.rmtree(site.folder / "exported")
    found["licenses"] = site.json(program, "license", "list")
    found["keys"] = site.json(program, "key", "list")["keys"]
    for key in found["keys"]:
        key.pop("usage", None)
    return found


def run(old, new, seed, records, folder):
    history = History(old, seed, records, folder)
    site = history.site
    history.begin()
    history.save()
    for _ in range(STEPS):
        history.step()
    history.save()
    saved, instants = history.saved, history.instants
    before = digests(site, old)
    with site.serve(old) as url:
        first = Caller(url, history.keys)
        first.everything(saved, instants)
        # A copy in which the old program goes on alone.
        other = Site(folder / "other")
        other.folder.mkdir()
        shutil.copyfile(site.db, other.db)
        content = site.db.read_bytes()
        askers = [Asker(url, history.keys["all"], f"/v1/{dataset}?limit=100") for dataset in DATASETS]
        for asker in askers:
            asker.start()
        begun = time.monotonic()
        if not ONLY_OLD:
            told = site.json(new, "upgrade")
            COUNTS["upgrade, ms"] += int(1000 * (time.monotonic() - begun))
            if Path(told["kept"]).read_bytes() != content:
                fail(f"{told['kept']} is not the old file")
        time.sleep(0.5)
        # The old server goes on with what it has until somebody restarts it.
        again = Caller(url, history.keys)
        again.everything(saved, instants)
        for asker in askers:
            asker.stop = True
            asker.join()
            if asker.error:
                fail(f"the old server: {asker.error}")
            COUNTS["answers of the old server meanwhile"] += asker.count
        same("the old server after the upgrade", first.answers, again.answers)
    if digests(site, new) != before:
        fail("exported files, licenses or keys differ")
    site.run(new, "check")
    rows = {dataset: history.rows(dataset) for dataset in DATASETS}
    with site.serve(new) as url:
        after = Caller(url, history.keys)
        after.everything(saved, instants)
        same("after the upgrade", first.answers, after.answers)
        usable = [place for place in saved if after.ask(place[0], "/v1/reference/therapy-areas")[0] != 401]
        ends = {(name, dataset, token): after.walk(name, dataset, f"since={token}")[0] for name, dataset, token in usable}
        ends = {place: end for place, end in ends.items() if end}
        COUNTS["tokens that go on"] += len(ends)
        COUNTS["tokens that ended"] += len(set(saved)) - len(ends)
    # Both go on with the same import.
    files = [history.write(dataset, rows[dataset]) for dataset in DATASETS]
    for place, program in ((site, new), (other, old)):
        place.run(program, "import", *files, "--allow-removals", "1000000")
    with site.serve(new) as url, other.serve(old) as other_url:
        for (name, dataset, token), end in ends.items():
            for start in (end, token):
                found = Caller(url, history.keys).walk(name, dataset, f"since={start}")[1]
                expected = Caller(other_url, history.keys).walk(name, dataset, f"since={start}")[1]
                if untimed(found) != untimed(expected):
                    fail(f"{name} {dataset} since {start}:\n  old {expected}\n  new {found}"[:4000])
                COUNTS["walks compared after an import"] += 1
                COUNTS["entries compared after an import"] += len(found)
    site.run(new, "check")


def untimed(entries):
    """Entries in their order, without the time of the last import, which two programs applied a moment apart."""
    plain = []
    for entry in entries.values():
        plain.append({name: value for name, value in entry.items() if name not in ("updated_at", "changed_at")})
    return plain


def main():
    old, records, histories = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    new = old if ONLY_OLD else os.environ["MEDFEED_BIN"]
    seed = int(os.environ.get("MEDFEED_SEED", "1"))
    for turn in range(seed, seed + histories):
        print(f"MEDFEED_SEED={turn}", flush=True)
        with tempfile.TemporaryDirectory(prefix="medfeed-upgrade-") as folder:
            run(old, new, turn, records, Path(folder))
    if not ONLY_OLD:
        with tempfile.TemporaryDirectory(prefix="medfeed-upgrade-") as folder:
            replicas(old, new, Path(folder))
    for name, count in sorted(COUNTS.items()):
        print(f"{count:>12} {name}")
    print(f"{histories} histories of {records} records: no difference")


main()
