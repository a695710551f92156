// The difference between two states of a record, and what changed in a copy.
import {daysBetween} from './deadlines.js';
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

/** The dates and figures that readers plan with, in words: [what, field, field of its confidence]. */
const FIGURES = {
	conferences: [['Abstracts due', 'abstract_due_date', 'abstract_due_date_status'], ['Late-breaking abstracts due', 'late_breaking_due_date', 'late_breaking_due_date_status'],
		['Meeting begins', 'start_date', 'start_date_status'], ['Meeting ends', 'end_date']],
	journals: [['Impact factor', 'impact_factor'], ['Article fee in US dollars', 'publishing.apc_usd'], ['Access', 'publishing.access'],
		['Weeks to acceptance, at least', 'timelines.online_submit_to_accept.min_weeks'], ['Weeks to acceptance, at most', 'timelines.online_submit_to_accept.max_weeks']],
};

const valueOf = (record, path) => path && path.split('.').reduce((value, name) => value?.[name], record);

/**
 * The dates and figures of interest in which two states differ: [{what, from, to, days, was, confidence}], and the other fields:
 * {figures, fields}. `days`: how far a date moved. `was` and `confidence`: how sure it was, and is.
 */
export function told(dataset, before, after) {
	const fields = differences(before, after), shown = new Set(), figures = [];
	for (const [what, path, status] of FIGURES[dataset]) {
		if (!fields.some(({field}) => field === path || field === status)) continue;
		shown.add(path).add(status);
		const [from, to] = [before, after].map(record => valueOf(record, path)).map(value => value == null ? null : textOf(path, value)), isMoved = from && to && from !== to && dataset === 'conferences';
		figures.push({what, from, to, days: isMoved ? daysBetween(from, to) : 0, was: valueOf(before, status), confidence: valueOf(after, status)});
	}
	return {figures, fields: fields.filter(({field}) => !shown.has(field))};
}

/** The dates of a record. */
const DATES = ['abstract_due_date', 'abstract_due_date_status', 'late_breaking_due_date', 'late_breaking_due_date_status', 'start_date', 'start_date_status', 'end_date'];

/** Whether a change fits a choice {ids, area, isDates}: only some records, a therapy area, only dates. An area is known of records that are still here. */
export function fitsChoice({id, kind, after, fields}, {ids, area, isDates}) {
	if (ids && !ids.has(id) || area && !after?.therapy_areas?.includes(area)) return false;
	return !isDates || (kind === 'changed' ? fields.some(({field}) => DATES.includes(field)) : kind === 'added' && DATES.some(field => after[field] && !field.endsWith('status')));
}

/** The rows of a file of changes: what changed, of which record, from what to what. */
export const changeRows = changes => changes.flatMap(({id, kind, before, after, at, fields}) => {
	const {abbv, name, year} = after ?? before, row = {change: kind, at: at?.toISOString() ?? '', id, name: abbv || name, year};
	return fields?.length ? fields.map(({field, from, to}) => ({...row, field, old: from, new: to})) : [{...row, field: '', old: '', new: ''}];
});

/** The time for which old values are remembered, and how many. More are cut down to the newest. */
const NOTES_MS = 90 * 86400000;
const MAX_NOTES = 5000;
export const LEFT_NOTES = 4000;

/** What stays of a record that was removed or left the license: its id, short name and year. */
const traceOf = ({id, abbv, name, year}) => ({id, abbv: abbv || name, year: year ?? null, isGone: true});

/** The members of a record that another state of it does not have equally, as they were; the trace of a record that is gone. */
function oldOf(before, after) {
	if (!before) return null;
	if (!after) return traceOf(before);
	const names = Object.keys({...before, ...after}).filter(name => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
	return Object.fromEntries(names.map(name => [name, before[name] ?? null]));
}

/** Notes without the old values of records that are gone. Earlier releases kept those records whole; the members that changed never include the id. */
function withoutGone(notes) {
	const gone = new Set(), kept = [];
	for (const note of [...notes].reverse()) {
		const {id, old} = note;
		if (old?.id) gone.add(id);
		if (old?.id) kept.push(old.isGone ? note : {...note, old: traceOf(old)});
		else if (!old || !gone.has(id)) kept.push(note);
	}
	return kept.reverse();
}

/**
 * Notes of the old values that changes replaced, with which records can be told as they were: {id, at, on, old}. `at`: when it arrived.
 * `on`: when the server changed it, or `at` if that is not known. `old`: the changed members as they were, null if the record was not
 * there, or what stays of a record that is gone. `visit`: when the last visit ended. `opened`: when the reader began to look.
 */
export class ChangeLog {
	constructor({notes = [], visit = null} = {}, now = Date.now()) {
		Object.assign(this, {notes, visit, opened: now, unsaved: 0, isCut: false});
		this.thin();
		this.cut(now);
	}

	/** Adds changes of a copy, with the time at which they arrived. */
	add(changes, at = new Date()) {
		for (const {id, before, after, removedAt} of changes) {
			// A record's time does not say when it came into the license, or that a restore changed it back.
			const isLater = before && after?.updated_at > before.updated_at, on = Date.parse(isLater ? after.updated_at : removedAt) || +at;
			this.notes.push({id, at: +at, on, old: oldOf(before, after)});
			this.unsaved++;
		}
		if (changes.some(({after}) => !after)) this.thin();
		this.cut(+at);
	}

	/** Removes the old values of records that are gone. */
	thin() {
		const kept = withoutGone(this.notes);
		if (kept.every((note, at) => note === this.notes[at]) && kept.length === this.notes.length) return;
		[this.notes, this.isCut] = [kept, true];
	}

	/** Removes old notes, and the oldest ones of many. */
	cut(now) {
		const {notes} = this, isOld = ({at}) => at < now - NOTES_MS;
		if (notes.length <= MAX_NOTES && !(notes.length && isOld(notes[0]))) return;
		this.notes = notes.slice(notes.length > MAX_NOTES ? -LEFT_NOTES : 0).filter(note => !isOld(note));
		this.isCut = true;
	}

	/** The notes that were not saved yet, or all: {isCut, notes}. `isCut`: they replace those that were saved. */
	take(isAll) {
		const {isCut, unsaved} = this, notes = isAll || isCut ? this.notes : this.notes.slice(this.notes.length - unsaved);
		[this.unsaved, this.isCut] = [0, false];
		return {isCut, notes};
	}

	/**
	 * The changes since a time [{id, kind, before, after, fields, at}], one per record, newest first. A record of which no note but the time
	 * of its last change tells has the kind `updated`. `records` is by id. `isArrival`: the time is when changes arrived.
	 */
	since(time, records, isArrival = false) {
		const states = new Map(), found = new Map();
		for (const note of [...this.notes].reverse()) {
			const {id, at, on, old} = note, after = records.get(id) ?? null;
			const before = old?.isGone ? old : old && {...states.has(id) ? states.get(id) : after, ...old};
			states.set(id, before);
			if ((isArrival ? at : on) >= time) found.set(id, {id, before, after, at: found.get(id)?.at ?? new Date(on)});
		}
		const changes = [...found.values()].map(({before, after, ...rest}) => ({...rest, kind: !after ? 'removed' : !before || before.isGone ? 'added' : 'changed', before, after,
			fields: before && after && !before.isGone ? differences(before, after) : []})).filter(({kind, before, after, fields}) => (before || after) && (kind !== 'changed' || fields.length));
		// All that arrived has notes, unless there are too many. A record that changed back may have changed before them.
		const told = new Set(changes.map(({id}) => id)), isTold = id => told.has(id) || Date.parse(found.get(id)?.before?.updated_at) < time;
		if (!isArrival || this.notes.length >= LEFT_NOTES) for (const after of records.values()) {
			const at = Date.parse(after.updated_at);
			if (at >= time && !isTold(after.id)) changes.push({id: after.id, kind: 'updated', after, at: new Date(at)});
		}
		return changes.sort((one, other) => other.at - one.at || one.id - other.id);
	}
}
