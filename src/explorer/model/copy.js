// A copy of one dataset, by id.

/** The records of one dataset that a license sees. */
export class Copy {
	constructor(dataset) {
		this.dataset = dataset;
		this.records = new Map();
	}

	get size() {
		return this.records.size;
	}

	/** Fills an empty copy. */
	load(records) {
		this.records = new Map(records.map(record => [record.id, record]));
	}

	/** Applies a feed entry, a record or a tombstone. Returns {id, kind, before, after, removedAt}, or null if nothing changed. */
	apply(entry) {
		const {id} = entry, before = this.records.get(id) ?? null, after = entry.deleted ? null : entry;
		// A feed may deliver a record twice, and removals of records that were never here.
		if (JSON.stringify(before) === JSON.stringify(after)) return null;
		after ? this.records.set(id, after) : this.records.delete(id);
		return {id, kind: !before ? 'added' : !after ? 'removed' : 'changed', before, after, removedAt: entry.deleted && entry.changed_at};
	}

	/** Replaces all records, after an export was loaded again. Returns the changes as `apply` does. */
	replace(records) {
		const kept = new Set(records.map(record => record.id));
		const gone = [...this.records.keys()].filter(id => !kept.has(id)).map(id => ({id, deleted: true}));
		return [...gone, ...records].map(entry => this.apply(entry)).filter(Boolean);
	}

	/** All records in the order of their ids. */
	list() {
		return [...this.records.values()].sort((one, other) => one.id - other.id);
	}
}
