"""Asks for every kind of answer with the generated Python client: `use.py URL KEY`."""

import gzip
import json
import sys

import httpx
from medfeed_client import AuthenticatedClient, Client
from medfeed_client.api.conferences import get_conference, list_conference_changes, list_conferences
from medfeed_client.api.exports import export_dataset
from medfeed_client.api.journals import get_journal, list_journal_changes, list_journals
from medfeed_client.api.reference_lists import list_organizations, list_tags, list_therapy_areas
from medfeed_client.api.status import get_status
from medfeed_client.models import (
    Conference,
    ExportDatasetDataset,
    ExportDatasetFormat,
    Journal,
    ListOrganizationsDataset,
    ListTagsDataset,
    Problem,
    Tombstone,
)
from medfeed_client.types import File

url, key = sys.argv[1:]


def refuse_redirects(response):
    """The client follows no redirect, so the key is sent to no other host; this says where the service pointed."""
    if response.has_redirect_location:
        target = str(httpx.URL(response.request.url).join(response.headers["Location"])).split("/v1/")[0]
        raise SystemExit(f"error: the service redirects to {target}; use that address if you trust it")


hooks = {"event_hooks": {"response": [refuse_redirects]}}
client = AuthenticatedClient(base_url=f"{url}/v1", token=key, httpx_args=hooks)

page = list_conferences.sync(client=client, limit=2, year=2026)
assert [type(record) for record in page.data] == [Conference, Conference] and page.has_more, page
following = list_conferences.sync(client=client, limit=2, year=2026, cursor=page.next_cursor)
assert following.data[0].id > page.data[1].id, following
assert list_journals.sync(client=client, q="journal").next_cursor is None

single = get_conference.sync(id=page.data[0].id, client=client)
assert single.data == page.data[0], single
assert isinstance(get_journal.sync(id=1, client=client).data, Journal)

feed = list_conference_changes.sync(client=client, updated_since="2000-01-01", limit=1000)
assert {type(entry) for entry in feed.data} == {Conference, Tombstone}, feed
assert not list_conference_changes.sync(client=client, since=feed.next_sync_token).data
assert list_journal_changes.sync(client=client).data == []

answer = export_dataset.sync_detailed(dataset=ExportDatasetDataset.CONFERENCES, client=client)
assert isinstance(answer.parsed, File), answer
lines = gzip.decompress(answer.parsed.payload.read()).splitlines()
assert len(lines) == int(answer.headers["X-Record-Count"]) > 0
assert Conference.from_dict(json.loads(lines[0])).id == 1
csv = export_dataset.sync(dataset=ExportDatasetDataset.JOURNALS, format_=ExportDatasetFormat.CSV, client=client)
assert csv.payload.read().startswith(b"\xef\xbb\xbfid,name,"), "the table"

assert list_tags.sync(client=client, dataset=ListTagsDataset.CONFERENCES).data[0].records > 0
assert list_organizations.sync(client=client, dataset=ListOrganizationsDataset.CONFERENCES).data[0].records > 0
assert list_therapy_areas.sync(client=client).data[0].conferences > 0
assert get_status.sync(client=Client(base_url=f"{url}/v1")).status == "ok"

problems = [
    (404, get_conference.sync(id=999999, client=client)),
    (400, list_conference_changes.sync(client=client, since="yesterday")),
    (401, list_journals.sync(client=AuthenticatedClient(base_url=f"{url}/v1", token="mfk_x"))),
]
for status, problem in problems:
    assert isinstance(problem, Problem) and problem.status == status and problem.request_id, problem
print("Python: every kind of answer was read")
