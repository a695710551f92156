// Proof that a copy equals the export.
import {jsonOf} from './json.js';

/**
 * The digest of records in the order of their ids, as `X-Records-Digest` has it: `sha-256=:…:`. Null where the browser computes
 * none, because the page was not loaded over HTTPS or from this machine.
 */
export async function digest(records, subtle = globalThis.crypto?.subtle) {
	if (!subtle) return null;
	const encoder = new TextEncoder(), parts = [];
	for (let at = 0; at < records.length; at += 1000) parts.push(encoder.encode(records.slice(at, at + 1000).map(record => jsonOf(record) + '\n').join('')));
	const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
	const hash = new Uint8Array(await subtle.digest('SHA-256', bytes));
	return `sha-256=:${btoa(String.fromCharCode(...hash))}:`;
}
