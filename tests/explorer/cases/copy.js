const at = (id, name) => ({id, name, updated_at: '2027-01-01T00:00:00Z'});

export const cases = [
	['entries replace, add and remove', ({copy: {Copy}}, is) => {
		const copy = new Copy('conferences');
		copy.load([at(2, 'b'), at(1, 'a')]);
		for (const [entry, kind] of [
			[at(1, 'A'), 'changed'], [at(3, 'c'), 'added'], [{id: 2, deleted: true}, 'removed'],
			// A record twice, and a tombstone of a record that was never here.
			[at(3, 'c'), undefined], [{id: 9, deleted: true}, undefined],
		]) {
			is(copy.apply(entry)?.kind, kind, JSON.stringify(entry));
		}
		is(copy.list().map(record => record.name), ['A', 'c']);
	}],
	['a change has the old and the new state', ({copy: {Copy}}, is) => {
		const copy = new Copy('conferences');
		copy.load([at(1, 'a')]);
		is(copy.apply(at(1, 'b')), {id: 1, kind: 'changed', before: at(1, 'a'), after: at(1, 'b')});
		is(copy.apply({id: 1, deleted: true, changed_at: '2027-01-02T00:00:00Z'}), {id: 1, kind: 'removed', before: at(1, 'b'), after: null, removedAt: '2027-01-02T00:00:00Z'});
		is(copy.apply(at(1, 'c')), {id: 1, kind: 'added', before: null, after: at(1, 'c')});
	}],
	['replacing returns the difference', ({copy: {Copy}}, is) => {
		const copy = new Copy('conferences');
		copy.load([at(1, 'a'), at(2, 'b'), at(3, 'c')]);
		const changes = copy.replace([at(1, 'a'), at(3, 'C'), at(4, 'd')]);
		is(changes.map(({id, kind}) => [id, kind]), [[2, 'removed'], [3, 'changed'], [4, 'added']]);
		is(copy.list().map(record => record.id), [1, 3, 4]);
	}],
];
