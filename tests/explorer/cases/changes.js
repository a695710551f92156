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
			[{a_new_field: 1}, [{field: 'a_new_field', from: '', to: '1'}]],
		]) is(differences(conference(), conference(fields)), expected, JSON.stringify(fields));
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
];
