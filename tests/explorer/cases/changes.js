const conference = fields => ({id: 1, name: 'Congress', city: null, therapy_areas: ['Oncology'], formats: {oral: null}, organizations: [], tags: [], updated_at: '1', ...fields});

export const cases = [
	['differences by field', ({changes: {differences}}, is) => {
		for (const [fields, expected] of [
			[{updated_at: '2'}, []],
			[{city: 'Madrid'}, [{field: 'city', from: '', to: 'Madrid'}]],
			[{therapy_areas: ['Hematology', 'Oncology']}, [{field: 'therapy_areas', from: '', to: 'Hematology'}]],
			[{formats: {oral: true}}, [{field: 'formats.oral', from: '', to: 'true'}]],
			[{organizations: [{id: 1, name: 'ESMO'}]}, [{field: 'organizations', from: '', to: 'ESMO'}]],
			[{tags: [{id: 1, type: 'Audience', name: 'Nurses'}]}, [{field: 'tags', from: '', to: 'Audience: Nurses'}]],
			[{sjr: 5}, [{field: 'sjr', from: '', to: '5.0'}]],
			[{a_new_field: 1}, [{field: 'a_new_field', from: '', to: '1'}]],
		]) is(differences(conference(), conference(fields)), expected, JSON.stringify(fields));
	}],
	['a link that changed under its name is told by the members that differ', ({changes: {differences, ChangeLog}}, is) => {
		const esmo = {id: 1, name: 'ESMO', abbv: null, type: 'society', url: 'https://old'}, nurses = {id: 2, type: 'Audience', name: 'Nurses', category: 'A'};
		for (const [field, old, now, from, to] of [
			['organizations', [esmo], [{...esmo, url: 'https://new'}], 'ESMO (url: https://old)', 'ESMO (url: https://new)'],
			['organizations', [esmo], [{...esmo, abbv: 'E', type: null}], 'ESMO (abbv: none, type: society)', 'ESMO (abbv: E, type: none)'],
			['organizations', [esmo], [{...esmo, id: 9}], 'ESMO (id: 1)', 'ESMO (id: 9)'],
			['organizations', [esmo], [{...esmo, founded: 1975}], 'ESMO (founded: none)', 'ESMO (founded: 1975)'],
			['organizations', [esmo], [{...esmo, name: 'The ESMO', url: null}], 'ESMO', 'The ESMO'],
			['organizations', [esmo], [esmo, {...esmo, id: 9, name: 'ASCO'}], '', 'ASCO'],
			['organizations', [esmo, {...esmo, id: 9, name: 'ASCO'}], [{...esmo, url: 'https://new'}], 'ESMO (url: https://old), ASCO', 'ESMO (url: https://new)'],
			['tags', [nurses], [{...nurses, category: 'B'}], 'Audience: Nurses (category: A)', 'Audience: Nurses (category: B)'],
			['tags', [nurses], [{...nurses, type: 'Topic'}], 'Audience: Nurses', 'Topic: Nurses'],
		]) {
			const [before, after] = [old, now].map(links => conference({[field]: links})), log = new ChangeLog();
			is(differences(before, after), [{field, from, to}], JSON.stringify(now));
			log.add([{id: 1, before, after}]);
			is(log.size, 1, JSON.stringify(now));
		}
	}],
	['the log has one change per record', ({changes: {ChangeLog}}, is) => {
		const log = new ChangeLog(), [a, b, c] = ['A', 'B', 'C'].map(name => conference({name}));
		const change = (id, before, after) => log.add([{id, before, after}]);
		change(1, a, b);
		change(2, null, a);
		change(1, b, c);
		is(log.list().map(({id, kind, fields}) => [id, kind, fields]), [[1, 'changed', [{field: 'name', from: 'A', to: 'C'}]], [2, 'added', []]]);
		change(1, c, a);
		is(log.size, 1, 'a record that changed back');
		change(2, a, null);
		is(log.size, 0, 'a record that came and went');
		change(3, a, null);
		change(3, null, b);
		is(log.list().map(({kind, before, after}) => [kind, before.name, after.name]), [['changed', 'A', 'B']], 'a record that went and came');
		change(4, a, {...a, updated_at: '9'});
		is(log.size, 1, 'a new time only');
	}],

	['a change moves to the front, with its newest time', ({changes: {ChangeLog}}, is) => {
		const log = new ChangeLog(), [a, b, c] = ['A', 'B', 'C'].map(name => conference({name}));
		log.add([{id: 1, before: a, after: b}, {id: 2, before: a, after: b}], new Date(1000));
		log.add([{id: 1, before: b, after: c}], new Date(2000));
		is(log.list().map(({id, at, before, after}) => [id, +at, before.name, after.name]), [[1, 2000, 'A', 'C'], [2, 1000, 'A', 'B']]);
		// Removed, and later here again as it was.
		log.add([{id: 2, before: b, after: null}]);
		is(log.list()[0].kind, 'removed');
		log.add([{id: 2, before: null, after: a}]);
		is(log.list().map(({id}) => id), [1]);
	}],
	['lists tell what left and what came', ({changes: {differences}}, is) => {
		is(differences(conference({therapy_areas: ['A', 'B', 'C']}), conference({therapy_areas: ['B', 'D', 'E']})), [{field: 'therapy_areas', from: 'A, C', to: 'D, E'}]);
		is(differences(conference({therapy_areas: ['A', 'B']}), conference({therapy_areas: ['B', 'A']})), [], 'the order alone');
		is(differences(conference({city: 'Bonn'}), conference({city: null})), [{field: 'city', from: 'Bonn', to: ''}]);
		is(differences(conference({formats: {oral: false}}), conference({formats: {oral: true}})), [{field: 'formats.oral', from: 'false', to: 'true'}]);
	}],
];
