// Asks for every kind of answer with the generated TypeScript types: `use.js URL KEY`.
import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import createClient from "openapi-fetch";
import type { components, paths } from "./medfeed.js";

type Conference = components["schemas"]["Conference"];
type Tombstone = components["schemas"]["Tombstone"];

const [url, key] = process.argv.slice(2) as [string, string];
// `fetch` follows redirects by itself, and sends `X-API-Key` along, to whatever host.
const client = createClient<paths>({ baseUrl: `${url}/v1`, headers: { "X-API-Key": key }, redirect: "manual" });
client.use({
  onResponse({ request, response }) {
    const target = response.headers.get("Location");
    if (response.status < 300 || response.status >= 400 || target === null) return;
    const address = new URL(target, request.url).href.split("/v1/")[0];
    throw new Error(`the service redirects to ${address}; use that address if you trust it`);
  },
});

const isTombstone = (entry: Conference | Tombstone): entry is Tombstone => "deleted" in entry;

/** What a request got, which must not be a problem. */
async function got<T>(asked: Promise<{ data?: T; error?: unknown }>): Promise<T> {
  const { data, error } = await asked;
  assert.equal(error, undefined);
  assert.ok(data !== undefined);
  return data;
}

const page = await got(client.GET("/conferences", { params: { query: { limit: 2, year: 2026 } } }));
assert.ok(page.has_more && page.next_cursor !== null);
const name: string = page.data[0]!.name;
const city: string | null = page.data[0]!.city;
assert.ok(name.length > 0 && city === null);
const next = { limit: 2, year: 2026, cursor: page.next_cursor };
const following = await got(client.GET("/conferences", { params: { query: next } }));
assert.ok(following.data[0]!.id > page.data[1]!.id);

const single = await got(client.GET("/journals/{id}", { params: { path: { id: 1 } } }));
const access: "subscription" | "hybrid" | "open" | null = single.data.publishing.access;
assert.equal(access, null);

const since = { updated_since: "2000-01-01", limit: 1000 };
const feed = await got(client.GET("/conferences/changes", { params: { query: since } }));
const tombstones = feed.data.filter(isTombstone);
assert.ok(tombstones.length > 0 && tombstones.length < feed.data.length && tombstones[0]!.deleted);
const poll = { since: feed.next_sync_token };
assert.equal((await got(client.GET("/conferences/changes", { params: { query: poll } }))).data.length, 0);

const path = { dataset: "conferences" } as const;
const { data: file, response } = await client.GET("/exports/{dataset}", { params: { path }, parseAs: "arrayBuffer" });
const lines = gunzipSync(Buffer.from(file as ArrayBuffer)).toString().trimEnd().split("\n");
assert.equal(lines.length, Number(response.headers.get("X-Record-Count")));
assert.equal((JSON.parse(lines[0]!) as Conference).id, 1);

const dataset = { dataset: "conferences" } as const;
assert.ok((await got(client.GET("/reference/tags", { params: { query: dataset } }))).data[0]!.records > 0);
assert.ok((await got(client.GET("/reference/organizations", { params: { query: dataset } }))).data[0]!.records > 0);
assert.ok((await got(client.GET("/reference/therapy-areas"))).data[0]!.conferences > 0);
assert.equal((await got(client.GET("/status"))).status, "ok");

const { error: missing } = await client.GET("/conferences/{id}", { params: { path: { id: 999999 } } });
assert.ok(missing && missing.status === 404 && missing.request_id);
const { error: refused } = await client.GET("/journals/changes", { params: { query: { since: "yesterday" } } });
assert.ok(refused && refused.status === 400 && refused.type.endsWith("/invalid_sync_token"));
console.log("TypeScript: every kind of answer was read");
