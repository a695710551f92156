// Columns, and records in their order.
import {fold} from './fold.js';
import {deadlinesOf} from './deadlines.js';

const text = value => value ? fold(value) : null;

/** The columns by which lists are sorted: {name: keyOf(record, today)}. A key is a text, a number or null. */
export const COLUMNS = {
	conferences: {
		deadline: (record, today) => deadlinesOf(record, {from: today})[0]?.date,
		name: record => text(record.abbv || record.name),
		start: record => record.start_date,
		place: record => text([record.country, record.city].filter(Boolean).join(' ')),
	},
	journals: {
		name: record => text(record.name),
		publisher: record => text(record.publisher),
		access: record => record.publishing?.access,
		fee: record => record.publishing?.apc_usd,
		impact: record => record.impact_factor,
		acceptance: record => record.timelines?.online_submit_to_accept?.min_weeks,
	},
};

/** The column by which a dataset's list is sorted at first. */
export const FIRST_COLUMN = {conferences: 'deadline', journals: 'name'};

const compare = (one, other) => one.key < other.key ? -1 : one.key > other.key ? 1 : one.id - other.id;

/** The slots of records in the order of a column. Records without a key are last in both directions. */
export class Order {
	/** `records` are by slot, and change: a record that is gone is null. */
	constructor(keyOf, today, records) {
		Object.assign(this, {keyOf, today, records, full: [], empty: [], fresh: [...records.keys()], isStale: true, lists: {}});
	}

	/** Notices the new record of a slot, or without a slot that records are gone. */
	change(...slots) {
		this.fresh.push(...slots);
		this.isStale = true;
	}

	/** The slots in order. */
	list(descending = false) {
		if (this.isStale) this.renew();
		return this.lists[descending] ??= [...descending ? [...this.full].reverse() : this.full, ...this.empty].map(pair => pair.slot);
	}

	renew() {
		const {records, keyOf, today} = this, isHere = ({slot}) => records[slot];
		const fresh = this.fresh.filter(slot => records[slot]).map(slot => ({slot, id: records[slot].id, key: keyOf(records[slot], today) ?? null}));
		const pairs = [...this.full, ...this.empty].filter(isHere).concat(fresh);
		// The sort is fast: most pairs are in order already.
		this.full = pairs.filter(({key}) => key !== null).sort(compare);
		this.empty = pairs.filter(({key}) => key === null).sort((one, other) => one.id - other.id);
		[this.fresh, this.isStale, this.lists] = [[], false, {}];
	}
}
