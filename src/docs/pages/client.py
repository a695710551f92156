import gzip, json, os, sqlite3, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

BASE = "{{base_url}}"
KEY = os.environ["MEDFEED_KEY"]
DATASET = "conferences"


def get(path):
    """Opens an answer; when the rate limit is reached, waits as long as it says."""
    while True:
        try:
            return urlopen(Request(BASE + path, headers={"Authorization": "Bearer " + KEY}), timeout=120)
        except HTTPError as error:
            if error.code != 429:
                raise
            time.sleep(int(error.headers["Retry-After"]))


def reload(db):
    """Replaces the local copy by an export and saves the export's token, in one transaction."""
    with get(f"/exports/{DATASET}") as answer, gzip.open(answer, "rt", encoding="utf-8") as lines:
        token = answer.headers["X-Sync-Token"]
        rows = [(json.loads(line)["id"], line) for line in lines]
    with db:
        db.execute("DELETE FROM record")
        db.executemany("INSERT INTO record VALUES (?, ?)", rows)
        db.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", [token])


def follow(db):
    """Applies all changes since the saved token: each page and its token in one transaction."""
    has_more = True
    while has_more:
        [token] = db.execute("SELECT token FROM position").fetchone()
        with get(f"/{DATASET}/changes?since={token}") as answer:
            page = json.load(answer)
        with db:
            for entry in page["data"]:
                if entry.get("deleted"):
                    db.execute("DELETE FROM record WHERE id = ?", [entry["id"]])
                else:
                    db.execute("INSERT OR REPLACE INTO record VALUES (?, ?)", [entry["id"], json.dumps(entry)])
            db.execute("UPDATE position SET token = ?", [page["next_sync_token"]])
        has_more = page["has_more"]


db = sqlite3.connect(DATASET + ".db")
db.execute("CREATE TABLE IF NOT EXISTS record (id INTEGER PRIMARY KEY, json TEXT NOT NULL)")
db.execute("CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY, token TEXT NOT NULL)")
if db.execute("SELECT token FROM position").fetchone() is None:
    reload(db)
while True:
    try:
        follow(db)
    except HTTPError as error:
        if error.code != 410:
            raise
        reload(db)
    time.sleep(60)
