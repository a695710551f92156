// An export, read line by line while it arrives.

/** An error whose words are for readers. Those of the browser's errors are not. */
export class Failure extends Error {}

/** The time between two reports of progress. Each draws the page. */
const PROGRESS_MS = 100;

/**
 * Reads the response of an export: {token, records}, or {tooMany: count} if it holds more than `max` records.
 * `onProgress(records, total)` runs now and then. It throws if the export breaks off.
 */
export async function readExport(response, {max = Infinity, onProgress = () => {}} = {}) {
	const header = name => response.headers.get(name), total = Number(header('x-record-count') ?? NaN);
	if (total > max) return tooMany(response.body, total);
	let stream = response.body;
	// The file is a gzip file. `fetch` decodes content encodings only.
	if (/gzip/.test(header('content-type'))) stream = stream.pipeThrough(new DecompressionStream('gzip'));
	const reader = stream.pipeThrough(new TextDecoderStream('utf-8', {ignoreBOM: true})).getReader();
	const records = [], share = sharer();
	const brokeOff = () => { throw new Failure(`The export broke off: ${records.length} of ${total} records arrived.`); };
	const read = () => reader.read().catch(brokeOff);
	let rest = '', told = performance.now();
	for (let piece = await read(); !piece.done; piece = await read()) {
		const lines = (rest + piece.value).split('\n');
		rest = lines.pop();
		for (const line of lines) records.push(share(JSON.parse(line)));
		if (records.length > max) return tooMany(reader, records.length);
		if (performance.now() - told < PROGRESS_MS) continue;
		onProgress(records.length, total);
		told = performance.now();
	}
	onProgress(records.length, total);
	if (rest || !(records.length === total || Number.isNaN(total))) brokeOff();
	return {token: header('x-sync-token'), records};
}

function tooMany(stream, count) {
	stream.cancel().catch(() => {});
	return {tooMany: count};
}

/** Returns a function that lets records share equal links, to save memory. */
export function sharer() {
	const known = new Map();
	const share = kind => link => {
		const name = kind + link.id, found = known.get(name);
		if (found && Object.keys(link).every(field => link[field] === found[field])) return found;
		known.set(name, link);
		return link;
	};
	const kinds = {organizations: share('organization'), tags: share('tag')};
	return record => {
		for (const kind in kinds) record[kind] = record[kind]?.map(kinds[kind]);
		return record;
	};
}
