#!/usr/bin/env python3
"""Generates clients from the OpenAPI document of a live medfeed server, and asks for every kind of answer with them.

    cargo build && python3 examples/generated/check.py

The document is linted first. The tools come from PyPI and npm into target/recipes. MEDFEED_BIN names another program.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True

from check import conference  # noqa: E402
from checks.redirects import KEY, Redirects  # noqa: E402
from checks.service import TARGET, Service, environment  # noqa: E402


def run(*command, **options):
    """Runs a command that succeeds, and shows what it says otherwise."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_redirect(*command, **options):
    """Redirects a client to another host, which must not see the key. The command gets the address and the key."""
    with Redirects() as hosts:
        done = subprocess.run([*command, hosts.url, KEY], capture_output=True, text=True, **options)
        fault = hosts.fault(done.stdout + done.stderr)
        if fault:
            raise SystemExit(f"error: {command[0].name if isinstance(command[0], Path) else command[0]}: a redirect: {fault}")


def node_packages():
    """The folder of programs of the npm packages."""
    folder = TARGET / "recipes" / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "package.json", folder)
    if subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder).returncode:
        raise SystemExit("error: npm cannot install the tools; this check needs the npm registry to be reachable")
    return folder


def check_python(document, url, key, folder):
    bin = environment("generated", HERE / "requirements.txt")
    environ = os.environ | {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "NO_PROXY": "*"}
    client = folder / "medfeed_client"
    told = run(bin / "openapi-python-client", "generate", "--path", document, "--config", HERE / "config.yaml", "--meta",
               "none", "--output-path", client, "--fail-on-warning", env=environ)
    if "Warning" in told:
        raise SystemExit(f"error: openapi-python-client warns\n{told}")
    environ |= {"PYTHONPATH": str(folder)}
    print(run(bin / "python", HERE / "use.py", url, key, env=environ).strip())
    check_redirect(bin / "python", HERE / "use.py", env=environ)


def check_typescript(packages, document, url, key, folder):
    # Beside the packages, so that imports find them.
    folder = Path(tempfile.mkdtemp(prefix="use-", dir=packages))
    try:
        shutil.copy(HERE / "use.ts", folder)
        programs = packages / "node_modules" / ".bin"
        run(programs / "openapi-typescript", document, "--output", folder / "medfeed.d.ts")
        run(programs / "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
            "--types", "node", folder / "use.ts", cwd=packages)
        environ = os.environ | {"NO_PROXY": "*"}
        print(run("node", folder / "use.js", url, key, env=environ).strip())
        check_redirect("node", folder / "use.js", env=environ)
    finally:
        shutil.rmtree(folder)


def main():
    packages = node_packages()
    with tempfile.TemporaryDirectory(prefix="medfeed-check-") as folder:
        folder = Path(folder)
        service = Service(folder)
        try:
            rows = [conference(id, 0) for id in range(1, 31)]
            rows[0] |= {"tags": [{"id": 1, "type": "Audience", "name": "Nurses", "category": None}]}
            service.import_rows(conferences=rows, journals=[{"id": 1, "name": "A journal"}])
            service.license()
            service.import_rows(conferences=[{"id": 30, "deleted": True}])
            service.serve()
            service.shown({row["id"]: row["venue"] for row in rows[:-1]})
            document = folder / "openapi.json"
            document.write_bytes(urllib.request.urlopen(f"{service.url}/openapi.json").read())
            told = run(packages / "node_modules" / ".bin" / "redocly", "lint", "--extends", "recommended", document)
            if "warning" in told.replace("Deprecation warning", ""):
                raise SystemExit(f"error: the document has flaws\n{told}")
            print("the OpenAPI document has no flaws")
            check_python(document, service.url, service.key, folder)
            check_typescript(packages, document, service.url, service.key, folder)
        finally:
            service.stop()


if __name__ == "__main__":
    main()
