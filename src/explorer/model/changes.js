// The difference between two states of a record.
import {textOf} from './json.js';

const nameOf = (list, link) => list === 'tags' ? `${link.type}: ${link.name}` : link.name ?? JSON.stringify(link);

/** A record's fields, each as a list of items: {text, members}. Only links have members. */
function flatten(value, path = '', fields = {}) {
	if (Array.isArray(value)) fields[path] = value.map(item => Object(item) !== item ? {text: String(item)} : {text: nameOf(path, item), members: item});
	else if (value && typeof value === 'object') for (const name in value) flatten(value[name], path + (path && '.') + name, fields);
	else fields[path] = value == null ? [] : [{text: textOf(path, value)}];
	return fields;
}

/** An item in words. An item of the same name tells it by the members in which the two differ. */
function worded({text, members}, others) {
	const other = members && others.find(other => other.text === text)?.members;
	if (!other) return text;
	const names = Object.keys({...other, ...members}).filter(name => members[name] !== other[name]);
	return `${text} (${names.map(name => `${name}: ${members[name] ?? 'none'}`).join(', ')})`;
}

/** The items that others lack, in words. */
function less(items = [], others = []) {
	const known = new Set(others.map(item => JSON.stringify(item)));
	return items.filter(item => !known.has(JSON.stringify(item))).map(item => worded(item, others)).join(', ');
}

/** The fields in which two states of a record differ, with the removed and the added texts: [{field, from, to}]. */
export function differences(before, after) {
	const [old, now] = [flatten(before), flatten(after)];
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
