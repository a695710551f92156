// A copy as rows that a computer keeps: chunks of records, notes of what changed, and a head with the token.
import {sharer} from './load.js';

/** The version of the rows. Rows of another version are dropped. */
export const FORMAT = 1;
/** The ids of a chunk. A change writes the chunks of its records, not all records. */
const CHUNK = 256;
/** A page that was away for less is still the same visit. */
const ABSENCE_MS = 30 * 60000;

const chunkOf = id => Math.floor(id / CHUNK);

/** The chunks of a copy: which of them have changed since they were written, and the records that each of them has in its row. */
export class Chunks {
	constructor(records = []) {
		this.changed = new Set();
		this.sizes = new Map();
		for (const {id} of records) this.sizes.set(chunkOf(id), (this.sizes.get(chunkOf(id)) ?? 0) + 1);
	}

	/** Notices that records changed. */
	change(ids) {
		for (const id of ids) this.changed.add(chunkOf(id));
	}

	/** The text of a changed chunk, which is to be written now; '' if it has no records. `records` is by id. */
	write(chunk, records) {
		const found = [];
		for (let id = chunk * CHUNK; id < (chunk + 1) * CHUNK; id++) if (records.has(id)) found.push(records.get(id));
		this.changed.delete(chunk);
		this.sizes.set(chunk, found.length);
		return found.length ? JSON.stringify(found) : '';
	}

	/** The records in all rows. */
	get count() {
		return [...this.sizes.values()].reduce((sum, size) => sum + size, 0);
	}
}

/** The copy in rows: {records, notes, token, at, visit, revision}; null if they are damaged or of another version. */
export function fromRows(head, chunks, notes, now = Date.now()) {
	try {
		const {format, token, at, visit, count, revision} = head, share = sharer();
		if (format !== FORMAT || !token || typeof token !== 'string' || !Number.isFinite(at)) return null;
		const records = chunks.flatMap(text => JSON.parse(text)).map(share);
		if (records.length !== count || new Set(records.map(({id}) => id)).size !== count || !records.every(({id}) => Number.isInteger(id))) return null;
		const told = notes.flatMap(text => JSON.parse(text));
		if (!told.every(note => Number.isInteger(note.id) && Number.isFinite(note.at) && note.old !== undefined)) return null;
		return {records, notes: told, token, at, revision, visit: now - at > ABSENCE_MS ? at : visit ?? at};
	} catch {
		return null;
	}
}
