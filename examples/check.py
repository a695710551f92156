#!/usr/bin/env python3
"""Runs the recipes against a live medfeed server, and compares their copies, or what they tell of one, with the exports.

    cargo build && python3 examples/check.py [RECIPE...]

After every step (edits, removals, a wider license, a narrower one, a restore, ...) the copy must be what the license shows.
The tools come from PyPI into environments of their own under target/recipes; a recipe whose programs (curl, jq, Rscript) are
not installed is left out. MEDFEED_BIN names another program.
"""

import shutil
import sys
import tempfile
from datetime import date, timedelta

sys.dont_write_bytecode = True  # The folder is shipped as it is.

from checks.copies import Airbyte, Dlt, Shell
from checks.pulled import Duckdb, Pandas, Polars, Pulled, R
from checks.redirects import KEY, Redirects
from checks.service import Service

RECIPES = {recipe.__name__.lower(): recipe for recipe in [Shell, Pandas, Polars, Duckdb, R, Dlt, Airbyte]}


def conference(id, version):
    """A conference; what tells versions apart is the venue."""
    society = lambda number, name: {"id": number, "name": name, "abbv": None, "type": None, "url": None}
    in_days = lambda days: (date.today() + timedelta(days=days)).isoformat()
    has_dates = id % 4 > 0
    return {
        "id": id,
        "name": f"={id} Kongress f\u00fcr \"Conference\" {id}, '{id}" if id % 7 == 0 else f"Conference {id}",
        "year": 2025 + id % 2,
        "start_date": in_days(id % 500 - 100) if has_dates else None,
        "start_date_status": "confirmed" if has_dates else "not_found",
        "abstract_due_date": in_days(id % 500 - 200) if has_dates else None,
        "abstract_due_date_status": "estimated" if has_dates else "not_found",
        "late_breaking_due_date": in_days(id % 300 - 100) if id % 3 == 0 else None,
        "late_breaking_due_date_status": "copied" if id % 3 == 0 else "not_found",
        "country": ["Japan", "France"][id % 3 % 2],
        "therapy_areas": [["Oncology"], ["Cardiology", "Oncology"], []][id % 3],
        "organizations": [society(1, "A society")] * (id % 3 == 1)
        + [society(2 + id % 5, f"\u00d6 society {id % 5}")] * (id % 5 > 0),
        "formats": {"oral": id % 5 == 0},
        "venue": f"version {version}",
    }


def report(recipe, step, compared):
    """Prints what was compared; returns how many copies or answers differed."""
    differing = 0
    for what, wrong in compared:
        differing += bool(wrong)
        verdict = f"DIFFERS at {wrong[:5]}" if wrong else "equal"
        print(f"{recipe.__name__}: {step}: {what}, {verdict}", flush=True)
    return differing


def check(recipe):
    """Goes through the steps with a recipe; returns how many copies differed."""
    differing = 0
    with tempfile.TemporaryDirectory(prefix="medfeed-check-") as folder:
        service = Service(folder)
        try:
            versions = {id: 0 for id in range(1, 1301)}
            years = (2026,)
            put = lambda ids, version: (
                versions.update((id, version) for id in ids),
                service.import_rows(conferences=[conference(id, version) for id in ids]),
            )
            put(range(1, 1301), 0)
            service.import_rows(journals=[{"id": id, "name": f"Journal {id}", "impact_factor": id / 4,
                                           "timelines": {"accept_to_online": {"min_weeks": 1.5}}}
                                          for id in range(1, 41)])
            service.license(*years)
            service.serve()
            copy = recipe(service)

            def compare(step, after_restore=False):
                nonlocal differing
                shown = {id: f"version {version}" for id, version in versions.items() if 2025 + id % 2 in years}
                exports = service.shown(shown)
                copy.update(after_restore)
                differing += report(recipe, step, copy.compare(exports))

            compare("first load")
            compare("nothing new")
            service.run("backup", str(service.folder / "backup.redb"))
            kept = dict(versions)
            put(range(1, 700), 1)
            compare("edits")
            removed = [*range(500, 560), 9]
            service.import_rows(conferences=[{"id": id, "deleted": True} for id in removed],
                                journals=[{"id": 40, "deleted": True}, {"id": 39, "name": "Renamed"}])
            for id in removed:
                del versions[id]
            compare("removals")
            years = (2025, 2026)
            service.license(*years)
            compare("a wider license")
            years = (2025,)
            service.license(*years)
            compare("a narrower license")
            years = (2025, 2026)
            service.license(*years)
            compare("a wider license again")
            put(removed, 2)
            compare("removed records come back")
            versions, years = kept, (2026,)
            service.run("restore", str(service.folder / "backup.redb"), "--yes")
            # A restore takes the keys back too; this one was there already.
            compare("a restore", after_restore=True)
            put(range(1, 20), 3)
            compare("edits after the restore")
        finally:
            service.stop()
    return differing


def check_few_records(recipe):
    """Licenses that lack a dataset, or show conferences without organizations, or none; returns how many answers differed."""
    differing = 0
    for datasets, year in [(["journals"], None), (["conferences"], 2025), (["conferences"], 2026), (["conferences"], 1999)]:
        with tempfile.TemporaryDirectory(prefix="medfeed-check-") as folder:
            service = Service(folder)
            try:
                rows = [conference(id, 0) | ({"organizations": [], "therapy_areas": []} if id % 2 else {}) for id in (3, 4)]
                service.import_rows(conferences=rows, journals=[{"id": 1, "name": "A journal"}])
                service.license(*[year] if year else [], datasets=datasets)
                service.serve()
                copy = recipe(service)
                exports = service.shown({row["id"]: "version 0" for row in rows if row["year"] == year}, datasets)
                copy.update(False)
                step = f"{' and '.join(datasets)} of {year or 'any year'}"
                differing += report(recipe, step, copy.compare(exports))
            finally:
                service.stop()
    return differing


def check_redirects(recipe):
    """Redirects a recipe to another host, which must not see the key; returns whether something is wrong."""
    with tempfile.TemporaryDirectory(prefix="medfeed-check-") as folder, Redirects() as hosts:
        service, said = Service(folder), ""
        service.url, service.key = hosts.url, KEY
        try:
            recipe(service).update(False)
        except SystemExit as error:
            said = str(error)
        fault = hosts.fault(said, recipe.follows_redirects)
        print(f"{recipe.__name__}: a redirect: {fault or 'the key is sent to no other host'}", flush=True)
        return bool(fault)


def main():
    chosen = sys.argv[1:] or list(RECIPES)
    if not RECIPES.keys() >= set(chosen):
        raise SystemExit(f"usage: check.py [{'] ['.join(RECIPES)}]")
    differing = 0
    for name in chosen:
        missing = [program for program in getattr(RECIPES[name], "needs", []) if not shutil.which(program)]
        if missing:
            print(f"{name} is left out: {' and '.join(missing)} is not installed")
        else:
            differing += check_redirects(RECIPES[name])
            differing += check(RECIPES[name])
            if issubclass(RECIPES[name], Pulled):
                differing += check_few_records(RECIPES[name])
    if differing:
        raise SystemExit(f"error: {differing} copies or answers differ from what the license shows, or keys are sent elsewhere")
    print("all are what the license shows")


if __name__ == "__main__":
    main()
