// The difference between two states of a record.

/** A record's fields, each as a list of texts. */
function flatten(value, path = '', fields = {}) {
	if (Array.isArray(value)) fields[path] = value.map(item => path === 'tags' ? `${item.type}: ${item.name}` : item.name ?? String(item));
	else if (value && typeof value === 'object') for (const name in value) flatten(value[name], path + (path && '.') + name, fields);
	else fields[path] = value == null ? [] : [String(value)];
	return fields;
}

/** The fields in which two states of a record differ, with the removed and the added texts: [{field, from, to}]. */
export function differences(before, after) {
	const [old, now] = [flatten(before), flatten(after)];
	const less = (some, others) => (some ?? []).filter(text => !others?.includes(text)).join(', ');
	return [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(field => field !== 'updated_at')
		.map(field => ({field, from: less(old[field], now[field]), to: less(now[field], old[field])}))
		.filter(({from, to}) => from || to);
}

/** The changes since a reader began to look: one per record, from its first state to its newest. */
export class ChangeLog {
	constructor() {
		this.byId = new Map();
	}

	/** Adds changes of a copy, with the time at which they arrived. */
	add(changes, at = new Date()) {
		for (const {id, before: previous, after} of changes) {
			const before = this.byId.has(id) ? this.byId.get(id).before : previous;
			this.byId.delete(id);
			const kind = !before ? 'added' : !after ? 'removed' : 'changed';
			const fields = before && after ? differences(before, after) : [];
			// A record that came and went, or changed and changed back, is as it was.
			if (before || after) if (kind !== 'changed' || fields.length) this.byId.set(id, {id, kind, before, after, fields, at});
		}
	}

	/** The number of records that differ. */
	get size() {
		return this.byId.size;
	}

	/** The changes [{id, kind, before, after, fields, at}], newest first. */
	list() {
		return [...this.byId.values()].reverse();
	}
}
