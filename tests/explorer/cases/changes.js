const conference = fields => ({id: 1, name: 'Congress', city: null, therapy_areas: ['Oncology'], formats: {oral: null}, organizations: [], tags: [], updated_at: '1', ...fields});

/** The changes since the log was opened. */
const news = (log, records) => log.since(log.opened, records, true);

export const cases = [
	['differences by field', ({changes: {differences}}, is) => {
		for (const [fields, expected, old = {}] of [
			[{updated_at: '2'}, []],
			[{city: 'Madrid'}, [{field: 'city', from: '', to: 'Madrid'}]],
			[{therapy_areas: ['Hematology', 'Oncology']}, [{field: 'therapy_areas', from: '', to: 'Hematology'}]],
			[{formats: {oral: true}}, [{field: 'formats.oral', from: '', to: 'true'}]],
			[{organizations: [{id: 1, name: 'ESMO'}]}, [{field: 'organizations', from: '', to: 'ESMO'}]],
			[{tags: [{id: 1, type: 'Audience', name: 'Nurses'}]}, [{field: 'tags', from: '', to: 'Audience: Nurses'}]],
			[{sjr: 5}, [{field: 'sjr', from: '', to: '5.0'}]],
			[{a_new_field: 1}, [{field: 'a_new_field', from: '', to: '1'}]],
			[{therapy_areas: ['B', 'D', 'E']}, [{field: 'therapy_areas', from: 'A, C', to: 'D, E'}], {therapy_areas: ['A', 'B', 'C']}],
			[{therapy_areas: ['B', 'A']}, [], {therapy_areas: ['A', 'B']}],
			[{city: null}, [{field: 'city', from: 'Bonn', to: ''}], {city: 'Bonn'}],
			[{formats: {oral: true}}, [{field: 'formats.oral', from: 'false', to: 'true'}], {formats: {oral: false}}],
		]) is(differences(conference(old), conference(fields)), expected, JSON.stringify(fields));
	}],
	['a link that changed under its name is described by the members that differ', ({changes: {differences, ChangeLog}}, is) => {
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
			is(news(log, new Map([[1, after]])).length, 1, JSON.stringify(now));
		}
	}],
	['the log has one change per record', ({changes: {ChangeLog}}, is) => {
		const [a, b, c] = ['A', 'B', 'C'].map(name => conference({name})), records = new Map([[1, a], [3, a], [4, a]]), log = new ChangeLog({}, 1000);
		let time = 1000;
		const change = (id, before, after) => {
			log.add([{id, before, after}], new Date(time++));
			after ? records.set(id, after) : records.delete(id);
		};
		change(1, a, b);
		change(2, null, a);
		change(1, b, c);
		is(news(log, records).map(({id, kind, fields}) => [id, kind, fields]), [[1, 'changed', [{field: 'name', from: 'A', to: 'C'}]], [2, 'added', []]]);
		change(1, c, a);
		is(news(log, records).length, 1, 'a record that changed back');
		change(2, a, null);
		is(news(log, records).length, 0, 'a record that came and went');
		change(3, a, null);
		change(3, null, b);
		is(news(log, records).map(({kind, before, after}) => [kind, before.abbv, after.name]), [['added', 'A', 'B']], 'of a record that went and came only the name is known');
		change(4, a, {...a, updated_at: '9'});
		is(news(log, records).length, 1, 'a new time only');
	}],

	['a change moves to the front, with its newest time', ({changes: {ChangeLog}}, is) => {
		const log = new ChangeLog({}, 1000), [a, b, c] = ['A', 'B', 'C'].map(name => conference({name}));
		log.add([{id: 1, before: a, after: b}, {id: 2, before: a, after: b}], new Date(1000));
		log.add([{id: 1, before: b, after: c}], new Date(2000));
		is(news(log, new Map([[1, c], [2, b]])).map(({id, at, before, after}) => [id, +at, before.name, after.name]), [[1, 2000, 'A', 'C'], [2, 1000, 'A', 'B']]);
		// Removed, and later here again as it was.
		log.add([{id: 2, before: b, after: null}], new Date(3000));
		is(news(log, new Map([[1, c]]))[0].kind, 'removed');
		log.add([{id: 2, before: null, after: a}], new Date(4000));
		is(news(log, new Map([[1, c], [2, a]])).map(({id, kind}) => [id, kind]), [[2, 'added'], [1, 'changed']]);
	}],
	['the changes since a time, with old values as far as they are known', ({changes: {ChangeLog}}, is) => {
		const at = day => new Date(`2026-06-${day}T00:00:00Z`), state = (id, city, day) => conference({id, city, updated_at: at(day).toISOString()});
		const records = new Map(), log = new ChangeLog({visit: +at(12)}, +at(10));
		const set = (day, id, after) => {
			log.add([{id, before: records.get(id) ?? null, after}], at(day));
			after ? records.set(id, after) : records.delete(id);
		};
		for (const id of [1, 2, 3, 4, 5]) records.set(id, state(id, 'A', '01'));
		records.set(6, state(6, 'A', '14'));
		set('11', 1, state(1, 'B', '11'));
		set('13', 1, state(1, 'C', '13'));
		set('13', 2, null);
		set('13', 7, state(7, 'A', '02'));
		set('14', 3, null);
		set('14', 3, state(3, 'D', '14'));
		// The change arrives later than the server made it.
		set('15', 4, state(4, 'E', '09'));
		// It changes back.
		set('15', 5, state(5, 'B', '15'));
		set('16', 5, state(5, 'A', '16'));
		// It comes and goes.
		set('15', 8, state(8, 'A', '15'));
		set('16', 8, null);
		const since = (day, ...rest) => log.since(+at(day), records, ...rest).map(({id, kind, before, after, fields}) => `${kind} ${id} ${before?.city ?? '-'} ${after?.city ?? '-'} ${fields?.length ?? '?'}`);
		is(since('08'), ['added 3 - D 0', 'updated 6 - A ?', 'changed 1 A C 1', 'removed 2 - - 0', 'added 7 - A 0', 'changed 4 A E 1']);
		is(since('12'), ['added 3 - D 0', 'updated 6 - A ?', 'changed 1 B C 1', 'removed 2 - - 0', 'added 7 - A 0']);
		is(since('12', true), ['added 3 - D 0', 'changed 1 B C 1', 'removed 2 - - 0', 'added 7 - A 0', 'changed 4 A E 1'], 'by arrival, without what did not arrive');
		is(since('17'), []);
		// The same from notes that were kept.
		const later = new ChangeLog({notes: JSON.parse(JSON.stringify(log.take(true).notes)), visit: +at(12)}, +at(17));
		is(later.since(+at('08'), records), log.since(+at('08'), records));
		is([news(later, records).length, later.take().notes.length], [0, 0]);
	}],
	['notes hold the changed members only, and are bounded', ({changes: {ChangeLog}}, is) => {
		const log = new ChangeLog({}, 1000), before = conference({city: 'A'}), after = conference({city: 'B', updated_at: '1970-01-01T00:00:02Z'});
		log.add([{id: 1, before, after}, {id: 2, before, after: null}, {id: 3, before: null, after}], new Date(3000));
		is(log.take(), {isCut: false, notes: [{id: 1, at: 3000, on: 2000, old: {city: 'A', updated_at: '1'}}, {id: 2, at: 3000, on: 3000, old: {id: 1, abbv: 'Congress', year: null, isGone: true}}, {id: 3, at: 3000, on: 3000, old: null}]});
		is(log.take(), {isCut: false, notes: []});
		// The server's time of a change. A record that a restore changed back, or that came into the license, has an older one of its own.
		const removedAt = '1970-01-01T00:00:02Z', restored = conference({city: 'A', updated_at: '1970-01-01T00:00:01Z'});
		for (const [change, on] of [
			[{before, after}, 2000], [{before: after, after: restored}, 3000], [{before: after, after: {...after, city: 'A'}}, 3000], [{before: null, after}, 3000],
			[{before, after: null, removedAt}, 2000], [{before, after: null}, 3000], [{before, after: null, removedAt: 'soon'}, 3000],
		]) {
			log.add([{id: 1, ...change}], new Date(3000));
			is(log.take().notes.at(-1).on, on, JSON.stringify(change));
		}
		log.add(Array.from({length: 6000}, (_, at) => ({id: 10 + at, before: null, after})), new Date(4000));
		is([log.notes.length, log.notes.at(-1).id], [4000, 6009]);
		const {isCut, notes} = log.take();
		is([isCut, notes.length], [true, 4000], 'they replace those that were saved');
		log.add([{id: 1, before: after, after: before}], new Date(5000));
		is(log.take().notes.length, 1);
		// After 90 days they are removed.
		const day = 86400000, old = [1, 50, 120].map(at => ({id: at, at: at * day, on: at * day, old: null}));
		is(new ChangeLog({notes: old}, 125 * day).take(), {isCut: true, notes: old.slice(1)});
	}],
	['of a record that is gone, the notes hold id, short name and year only', ({changes: {ChangeLog}}, is) => {
		const whole = conference({id: 2, abbv: 'CAB', year: 2027, venue: 'Hall 6'}), trace = {id: 2, abbv: 'CAB', year: 2027, isGone: true}, note = (at, id, old) => ({id, at, on: at, old});
		const log = new ChangeLog({}, 1000);
		log.add([{id: 2, before: whole, after: {...whole, venue: 'Hall 7'}}, {id: 3, before: whole, after: {...whole, venue: 'Hall 8'}}], new Date(2000));
		log.take();
		log.add([{id: 2, before: {...whole, venue: 'Hall 7'}, after: null}], new Date(3000));
		is(log.take(), {isCut: true, notes: [note(2000, 3, {venue: 'Hall 6'}), note(3000, 2, trace)]}, 'the values before it went are gone too');
		// Notes of the first release hold whole records. They are replaced where they are kept.
		const older = new ChangeLog({notes: [note(1, 2, {venue: 'Hall 5'}), note(2, 2, whole), note(3, 2, null), note(4, 2, {venue: 'Hall 9'})]}, 5);
		is(older.take(), {isCut: true, notes: [note(2, 2, trace), note(3, 2, null), note(4, 2, {venue: 'Hall 9'})]});
		is(new ChangeLog({notes: [note(2, 2, trace)]}, 5).take(), {isCut: false, notes: []});
	}],
	['changes are chosen by record, area and dates, and are rows of a file', ({changes: {changeRows, fitsChoice}}, is) => {
		const changes = [
			{id: 1, kind: 'changed', before: conference({}), after: conference({city: 'B'}), at: new Date(0), fields: [{field: 'city', from: 'A', to: 'B'}]},
			{id: 2, kind: 'changed', before: conference({}), after: conference({therapy_areas: ['Neurology'], abbv: 'N', year: 2027}), at: new Date(0), fields: [{field: 'start_date', from: '', to: '2027-01-02'}, {field: 'city', from: 'A', to: 'B'}]},
			{id: 3, kind: 'removed', before: {id: 3, abbv: 'GONE', year: 2026, isGone: true}, after: null, at: new Date(0), fields: []},
			{id: 4, kind: 'added', before: null, after: conference({start_date: '2027-01-02'}), at: new Date(0), fields: []}, {id: 5, kind: 'updated', after: conference({start_date_status: 'check'}), at: new Date(0)},
		];
		for (const [choice, expected] of [[{}, [1, 2, 3, 4, 5]], [{ids: new Set([3, 1])}, [1, 3]], [{ids: new Set()}, []], [{area: 'Neurology'}, [2]], [{area: 'Oncology'}, [1, 4, 5]], [{isDates: true}, [2, 4]], [{isDates: true, area: 'Oncology'}, [4]]]) {
			is(changes.filter(change => fitsChoice(change, choice)).map(({id}) => id), expected, JSON.stringify(choice));
		}
		is(changeRows(changes).map(row => [row.change, row.id, row.name, row.field, row.old, row.new].join(' ')), ['changed 1 Congress city A B', 'changed 2 N start_date  2027-01-02', 'changed 2 N city A B', 'removed 3 GONE   ', 'added 4 Congress   ', 'updated 5 Congress   ']);
	}],
	['dates and figures are described first: how far they moved, and how sure they are', ({changes: {told}}, is) => {
		const of = (dataset, before, after) => told(dataset, {id: 1, ...before}, {id: 1, ...after});
		const dates = (abstract_due_date, abstract_due_date_status, more) => ({abstract_due_date, abstract_due_date_status, ...more});
		const what = 'Abstracts due';
		for (const [before, after, expected] of [
			[dates('2027-01-31', 'estimated'), dates('2027-02-14', 'confirmed'), [{what, from: '2027-01-31', to: '2027-02-14', days: 14, was: 'estimated', confidence: 'confirmed'}]],
			[dates('2027-03-01', 'confirmed'), dates('2027-02-28', 'confirmed'), [{what, from: '2027-03-01', to: '2027-02-28', days: -1, was: 'confirmed', confidence: 'confirmed'}]],
			[dates('2027-03-01', 'estimated'), dates('2027-03-01', 'confirmed'), [{what, from: '2027-03-01', to: '2027-03-01', days: 0, was: 'estimated', confidence: 'confirmed'}]],
			[dates(null, 'not_found'), dates('2027-03-01', 'copied'), [{what, from: null, to: '2027-03-01', days: 0, was: 'not_found', confidence: 'copied'}]],
			[dates('2027-03-01', 'copied'), dates(null, 'check'), [{what, from: '2027-03-01', to: null, days: 0, was: 'copied', confidence: 'check'}]],
			[dates('2027-03-01', 'copied'), dates('2027-03-01', 'copied', {city: 'Bonn'}), []],
		]) is(of('conferences', before, after).figures, expected, JSON.stringify(after));
		is(of('conferences', {city: 'A', end_date: '2027-01-01'}, {city: 'B', end_date: '2027-01-03'}).fields, [{field: 'city', from: 'A', to: 'B'}], 'each field once');
		const journal = (impact_factor, apc_usd, publisher) => ({impact_factor, publishing: {apc_usd}, publisher});
		const {figures, fields} = of('journals', journal(5, 2000, 'P'), journal(6.5, null, 'Q'));
		is(figures.map(({what, from, to, days}) => [what, from, to, days]), [['Impact factor', '5.0', '6.5', 0], ['Article fee in US dollars', '2000.0', null, 0]]);
		is(fields.map(({field}) => field), ['publisher']);
	}],
];
