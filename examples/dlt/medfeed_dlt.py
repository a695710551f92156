"""A dlt source over the change feeds of a medfeed service.

    pip install 'dlt[duckdb]'
    export SOURCES__MEDFEED__URL=https://feed.example.org SOURCES__MEDFEED__API_KEY=mfk_...
    python3 medfeed_dlt.py

Each run brings the tables `conferences` and `journals` up to date. The first run loads the exports, later ones ask for what
changed since the sync token. The token stands in the state of its resource, which dlt saves with the load: records and token
always fit together. A tombstone deletes its row. When a token is no longer usable (410: the license changed, or the service
was restored from a backup), the tables are emptied and loaded anew.

Why no `dlt.sources.incremental` over `updated_at`: that field does not move when a record enters the license, so dlt would
drop such records, and would never hear of removals.
"""

import gzip
import json

import dlt
from dlt.pipeline.exceptions import PipelineStepFailed
from dlt.sources.helpers import requests  # Asks again after lost connections, 429 and 5xx, and heeds Retry-After.


class Gone(Exception):
    """The sync token is no longer usable: the table must be loaded anew."""


def get(url, api_key, **params):
    # A redirect is refused: the key would be sent along, to whatever host.
    response = requests.Client(raise_for_status=False).get(
        url, params=params, headers={"X-API-Key": api_key}, allow_redirects=False)
    if response.is_redirect:
        target = response.next.url.split("/v1/")[0].removesuffix("/openapi.json")
        raise RuntimeError(f"{url}: the service redirects to {target}; use that address if you trust it")
    if response.status_code == 410:
        raise Gone(response.json()["detail"])
    if response.status_code != 200:
        # Quoted: what a service sends must not control the terminal.
        raise RuntimeError(f"{response.url}: {response.status_code} {response.text[:1000]!r}")
    return response


def export(url, api_key, dataset):
    """All records, and the sync token to go on from."""
    response = get(f"{url}/v1/exports/{dataset}", api_key)
    rows = [json.loads(line) for line in gzip.decompress(response.content).splitlines()]
    if len(rows) != int(response.headers["X-Record-Count"]):
        raise RuntimeError(f"the export of {dataset} is not whole; run again")
    return rows, response.headers["X-Sync-Token"]


def changes(url, api_key, dataset, token):
    """What changed since the token, each record once, and the next token."""
    entries, has_more = {}, True
    while has_more:
        page = get(f"{url}/v1/{dataset}/changes", api_key, since=token).json()
        # A record that changes during the walk comes again: the later entry counts.
        entries.update((entry["id"], entry) for entry in page["data"])
        token, has_more = page["next_sync_token"], page["has_more"]
    return list(entries.values()), token


# The types of dlt by those of JSON Schema.
TYPES = {"integer": "bigint", "number": "double", "boolean": "bool", "array": "json", "object": "json"}
TIMES = {"date": "date", "date-time": "timestamp"}


def columns(url, api_key, dataset):
    """The columns of a dataset, from the service's OpenAPI document: a number stays one if the first load has none or whole ones."""
    schemas = get(f"{url}/openapi.json", api_key).json()["components"]["schemas"]

    def data_type(field):
        field = field.get("anyOf", [field])[0]  # The other one is null.
        field = schemas[field["$ref"].rsplit("/", 1)[1]] if "$ref" in field else field
        kind = field["type"] if isinstance(field["type"], str) else field["type"][0]
        return TIMES.get(field.get("format")) or TYPES.get(kind, "text")

    record = schemas[dataset.removesuffix("s").capitalize()]
    types = {name: {"data_type": data_type(field)} for name, field in record["properties"].items()}
    return types | {"deleted": {"data_type": "bool", "hard_delete": True}}


def follow(url, api_key, dataset):
    state = dlt.current.resource_state()
    if "token" in state:
        rows, token = changes(url, api_key, dataset, state["token"])
    else:
        rows, token = export(url, api_key, dataset)
    yield rows
    state["token"] = token


# Lists and objects stay JSON, so that a row is a record; without this, dlt makes tables of their items.
@dlt.source(name="medfeed", max_table_nesting=0)
def medfeed(url: str = dlt.config.value, api_key: str = dlt.secrets.value, datasets=("conferences", "journals")):
    """The datasets of a license."""
    url, api_key = url.rstrip("/"), api_key.strip()
    if not (api_key.isascii() and api_key.isprintable()):
        raise ValueError("api_key holds characters that no key has")  # `requests` would show the key in its error.
    for dataset in datasets:
        yield dlt.resource(
            follow,
            name=dataset,
            primary_key="id",
            write_disposition="merge",
            columns=columns(url, api_key, dataset),
        )(url, api_key, dataset)


def run(pipeline, *args, **kwargs):
    """Brings the tables of a pipeline up to date; takes what `medfeed` takes."""
    try:
        return pipeline.run(medfeed(*args, **kwargs))
    except PipelineStepFailed as error:
        cause = error
        while cause is not None and not isinstance(cause, Gone):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        # Empties the tables and forgets the tokens.
        return pipeline.run(medfeed(*args, **kwargs), refresh="drop_data")


if __name__ == "__main__":
    print(run(dlt.pipeline("medfeed", destination="duckdb", dataset_name="feed")))
