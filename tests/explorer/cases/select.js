const REGIONS = {Americas: 'Canada|United States,us,usa', Asia: 'Japan', Europe: 'Czechia,czechrepublic|Germany|Spain'};
const TODAY = '2027-01-01';

let id = 0;
const conference = (name, fields) => ({id: ++id, name, abbv: null, year: 2027, start_date: null, start_date_status: 'not_found', country: null, city: null, therapy_areas: [],
	abstract_due_date: null, abstract_due_date_status: 'not_found', late_breaking_due_date: null, late_breaking_due_date_status: 'not_found', formats: {}, organizations: [], tags: [], ...fields});
const CONFERENCES = [
	conference('ESMO Congress', {abbv: 'ESMO', country: 'Spain', city: 'Madrid', therapy_areas: ['Oncology'], abstract_due_date: '2027-02-15', abstract_due_date_status: 'confirmed',
		late_breaking_due_date: '2027-06-01', late_breaking_due_date_status: 'estimated', start_date_status: 'copied', formats: {oral: true, poster: false, e_poster: null}}),
	conference('World Conference on Lung Cancer', {country: 'USA', city: 'San Diego', therapy_areas: ['Oncology', 'Pulmonology'], abstract_due_date: '2027-01-20', abstract_due_date_status: 'estimated', start_date_status: 'confirmed'}),
	conference('Sjögren Symposium', {country: 'Czech Republic', city: 'Prague', year: 2028, therapy_areas: ['Rheumatology'], organizations: [{id: 1, name: 'European Alliance', abbv: 'EULAR'}]}),
	conference('Lung Days', {country: 'Germany', therapy_areas: ['Pulmonology'], abstract_due_date: '2026-12-31', abstract_due_date_status: 'confirmed',
		late_breaking_due_date: '2027-01-05', late_breaking_due_date_status: 'copied', tags: [{id: 1, type: 'Audience', name: 'Nurses'}]}),
	conference('日本癌学会', {country: 'Japan', city: '横浜市', year: null, therapy_areas: ['Oncology']}),
];

/** Answers a question over the conferences: the first words of the names, and the facets. */
function answer(model, given) {
	model.facets.setRegions(REGIONS);
	const index = new model.search.Index('conferences');
	index.add(CONFERENCES);
	const found = model.select.select(index, {...model.question.firstQuestion('conferences'), sort: 'name', ...given}, TODAY);
	return {...found, names: found.records.map(record => record.name.split(' ')[0]).join(' ')};
}
const counts = ({facets}, name) => facets.find(facet => facet.name === name).values.map(({value, count, chosen}) => `${value || '?'} ${count}${chosen ? '!' : ''}`).join(', ');

export const cases = [
	['each word is the beginning of a word of the record', (model, is) => {
		for (const [words, names] of [
			['', 'ESMO Lung Sjögren World 日本癌学会'], ['esmo 2027', 'ESMO'], ['ESMO 2028', ''], ['madrid', 'ESMO'], ['oncology lung', 'World'], ['lung onc', 'World'], ['sjogren', 'Sjögren'],
			['ung', ''], ['eular', 'Sjögren'], ['nurses', 'Lung'], ['usa', 'World'], ['united states', 'World'], ['czechia', 'Sjögren'], ['europe', 'ESMO Lung Sjögren'], ['癌', '日本癌学会'], ['横浜', '日本癌学会'],
			['  lung,  ', 'Lung World'], ['lung xyz', ''], ['* . (', 'ESMO Lung Sjögren World 日本癌学会'],
		]) is(answer(model, {words}).names, names, words);
	}],
	['facets count, each without its own choice', (model, is) => {
		const all = answer(model, {});
		is(counts(all, 'region'), 'Europe 3, Americas 1, Asia 1');
		is(counts(all, 'area'), 'Oncology 3, Pulmonology 2, Rheumatology 1');
		is(counts(all, 'year'), '2027 3, 2028 1, ? 1');
		is(counts(all, 'format'), 'oral 1, ? 4');
		is(counts(all, 'dates'), 'not_found 3, confirmed 1, copied 1');
		is(answer(model, {facets: {dates: ['confirmed', 'copied']}}).names, 'ESMO World');
		const some = answer(model, {facets: {region: ['Europe'], area: ['Oncology']}});
		is([some.total, some.names], [1, 'ESMO']);
		is(counts(some, 'region'), 'Americas 1, Asia 1, Europe 1!');
		is(counts(some, 'area'), 'Oncology 1!, Pulmonology 1, Rheumatology 1');
		is(counts(some, 'country'), 'Spain 1');
	}],
	['values that are not announced are counted, last, and can be chosen', (model, is) => {
		model.facets.setRegions(REGIONS);
		const none = {formats: {oral: false, poster: false, e_poster: false, published_abstract: false, encore: false}};
		const made = [
			conference('Known', {country: 'Spain', therapy_areas: ['Oncology'], formats: {oral: true}, tags: [{id: 1, type: 'A', name: 'B'}]}),
			...['One', 'Two', 'Three'].map(name => conference(name, {year: null, formats: {oral: false, poster: null}})),
			conference('Elsewhere', {country: 'Atlantis', ...none}),
		];
		const index = new model.search.Index('conferences'), ask = facets => model.select.select(index, {...model.question.firstQuestion('conferences'), sort: 'name', facets}, TODAY);
		index.add(made);
		const all = ask({});
		// Three have none of a value, so it would be first by its count. A country of no region is known.
		for (const [facet, expected] of [
			['area', 'Oncology 1, ? 4'], ['region', 'Europe 1, Other 1, ? 3'], ['country', 'Atlantis 1, Spain 1, ? 3'], ['year', '2027 2, ? 3'], ['format', 'no 1, oral 1, ? 3'], ['tag', 'A: B 1, ? 4'],
			['dates', 'not_found 5'], ['confidence', 'not_found 5'],
		]) is(counts(all, facet), expected, facet);
		const words = name => all.facets.find(facet => facet.name === name).values.map(({text}) => text);
		is([words('country'), words('format'), words('tag')], [['Atlantis', 'Spain', 'Not announced'], ['None of these', 'Oral presentations', 'Not announced'], ['A: B', 'No tag']]);
		const names = facets => ask(facets).records.map(({name}) => name).join(' ');
		is([names({region: ['']}), names({region: ['', 'Europe']}), names({format: ['', 'no']}), names({country: [''], area: ['Oncology']})], ['One Three Two', 'Known One Three Two', 'Elsewhere One Three Two', '']);
		is(counts(ask({region: ['Europe', '']}), 'region'), 'Europe 1!, Other 1, ? 3!');
		is(counts(ask({region: ['Asia']}), 'region'), 'Europe 1, Other 1, Asia 0!, ? 3');
		// Values that are announced later are counted at their own entry.
		index.apply([{id: made[1].id, after: {...made[1], country: 'Japan'}}]);
		is([counts(ask({}), 'region'), names({region: ['']})], ['Asia 1, Europe 1, Other 1, ? 2', 'Three Two']);
		const journals = new model.search.Index('journals');
		journals.add([[1, {}], [2, {access: 'open', apc_usd: 0, content_license: 'CC BY'}]].map(([id, publishing]) => ({id, name: `${id}`, publisher: null, publishing, timelines: {}, organizations: [], tags: []})));
		const found = model.select.select(journals, model.question.firstQuestion('journals'), TODAY);
		is(['access', 'fee', 'publisher', 'license', 'tag'].map(name => counts(found, name)), ['open 1, ? 1', '0 1, ? 1', '? 2', 'CC BY 1, ? 1', '? 2']);
	}],
	['several values of a facet are alternatives', (model, is) => {
		is(answer(model, {facets: {region: ['Europe', 'Asia'], area: ['Oncology']}}).names, 'ESMO 日本癌学会');
		is(answer(model, {facets: {area: ['Oncology', 'Pulmonology'], region: ['Americas']}}).names, 'World');
		const none = answer(model, {facets: {country: ['Atlantis']}});
		is([none.total, counts(none, 'country')], [0, 'Czech Republic 1, Germany 1, Japan 1, Spain 1, USA 1, Atlantis 0!']);
	}],
	["the planner's question", (model, is) => {
		const found = answer(model, {facets: {area: ['Oncology'], region: ['Europe']}, kind: 'abstract', within: 60});
		is(found.names, 'ESMO');
		is(found.deadlines.map(({kind, date, confidence}) => [kind, date, confidence]), [['abstract', '2027-02-15', 'confirmed']]);
	}],
	['a period selects the deadlines in it', (model, is) => {
		is(answer(model, {within: 30}).names, 'Lung World');
		is(answer(model, {within: 30, kind: 'abstract'}).names, 'World');
		is(answer(model, {kind: 'late_breaking'}).names, 'ESMO Lung');
		const all = answer(model, {mode: 'deadlines'});
		is(all.deadlines.map(({record, date}) => `${record.name.split(' ')[0]} ${date}`), ['Lung 2027-01-05', 'World 2027-01-20', 'ESMO 2027-02-15', 'ESMO 2027-06-01']);
		// A past deadline does not affect the confidence.
		is(counts(all, 'confidence'), 'estimated 2, confirmed 1, copied 1, not_found 0');
		const ofKind = descending => answer(model, {kind: 'late_breaking', sort: 'deadline', descending}).names;
		is([ofKind(false), ofKind(true)], ['Lung ESMO', 'ESMO Lung']);
		is(answer(model, {kind: 'abstract', sort: 'deadline', facets: {confidence: ['confirmed', 'estimated']}}).names, 'World ESMO');
		const confirmed = answer(model, {mode: 'deadlines', facets: {confidence: ['confirmed']}});
		is(confirmed.deadlines.map(({date}) => date), ['2027-02-15']);
		is(counts(confirmed, 'confidence'), 'estimated 2, confirmed 1!, copied 1, not_found 0');
		is(answer(model, {}).deadlines, null);
		is(counts(answer(model, {mode: 'deadlines', facets: {area: ['Oncology']}}), 'confidence'), 'estimated 2, confirmed 1, copied 0, not_found 0');
	}],
	['the deadline of a row is the one that fits the period and the confidences', (model, is) => {
		// By the conferences above: [question, names with the deadline that the list shows].
		for (const [given, expected] of [
			[{within: 60}, ['Lung late_breaking 2027-01-05 copied', 'World abstract 2027-01-20 estimated', 'ESMO abstract 2027-02-15 confirmed']],
			[{within: 365, facets: {confidence: ['estimated']}}, ['World abstract 2027-01-20 estimated', 'ESMO late_breaking 2027-06-01 estimated']],
			[{within: 365, facets: {confidence: ['confirmed']}}, ['ESMO abstract 2027-02-15 confirmed']],
			[{kind: 'late_breaking', facets: {confidence: ['estimated', 'copied']}}, ['Lung late_breaking 2027-01-05 copied', 'ESMO late_breaking 2027-06-01 estimated']],
			// Without a period, a deadline that has passed fits too, and one without a date. The list is in the order of the
			// shown deadlines.
			[{facets: {confidence: ['estimated']}, sort: 'deadline'}, ['World abstract 2027-01-20 estimated', 'ESMO late_breaking 2027-06-01 estimated']],
			[{facets: {confidence: ['estimated']}, sort: 'deadline', descending: true}, ['ESMO late_breaking 2027-06-01 estimated', 'World abstract 2027-01-20 estimated']],
			[{facets: {confidence: ['confirmed']}, sort: 'deadline'}, ['ESMO abstract 2027-02-15 confirmed', 'Lung abstract 2026-12-31 confirmed']],
			[{facets: {confidence: ['not_found'], country: ['USA', 'Japan']}}, ['World late_breaking null not_found', '日本癌学会 abstract null not_found']],
		]) {
			const question = {...model.question.firstQuestion('conferences'), sort: 'deadline', past: 'yes', ...given}, found = answer(model, question), what = JSON.stringify(given);
			const inWords = ({record, kind, date, confidence}) => `${record.name.split(' ')[0]} ${kind} ${date} ${confidence}`;
			const period = model.select.periodOf(question, TODAY);
			is(found.records.map(record => inWords(model.deadlines.shownDeadline(record, TODAY, period))), expected, what);
			// The files have the same: the CSV file each row's, the calendar all that fit.
			const files = model.files.filesOf(question, found, TODAY);
			is(files.rows().map(inWords), expected, `CSV: ${what}`);
			const events = files.events().filter(({kind}) => kind !== 'meeting').map(inWords);
			is(events.filter(one => expected.includes(one)).length, expected.filter(one => !one.includes(' null ')).length, `calendar: ${what}`);
			const {confidence} = given.facets ?? {};
			is(events.every(one => !confidence || confidence.includes(one.split(' ').at(-1))), true, `confidences of the calendar: ${what}`);
		}
		const question = {...model.question.firstQuestion('conferences'), mode: 'deadlines'}, found = answer(model, question);
		const files = model.files.filesOf(question, found, TODAY);
		is([files.rows().length, files.events().length, files.counts], [4, 4, {events: 4, rows: 4}], 'deadlines by month');
		const all = model.question.firstQuestion('conferences');
		is(model.files.filesOf(all, answer(model, all), TODAY).rows().map(({id}) => id).sort(), CONFERENCES.map(({id}) => id), 'all records');
	}],
	['numbers as readers type them', ({ranges: {RANGES, isReversed, typedValue}}, is) => {
		for (const [text, expected] of [
			['5', '5'], [' 5.5 ', '5.5'], ['5,5', '5.5'], ['1,500', '1500'], ['1,234,567', '1234567'], ['1,500.5', '1500.5'], ['1,50', '1.50'], ['0', '0'],
			['>5', '5'], ['5+', '5'], ['>= 5.5', '5.5'], ['3k', '3000'], ['2,5k', '2500'], ['12 weeks', '12'], ['< 12 wks', '12'], ['1 week', '1'], ['12 months', ''], ['k', ''], ['>', ''],
			['1 500', '1500'], ['2.500', '2.500'], ['$5', ''], ['', ''], [' ', ''], ['-5', ''], ['abc', ''], ['5e3', ''], ['1,2,3', ''], ['5.5.5', ''], ['1.500,5', ''], ['2027-01-01', ''],
		]) is(typedValue(RANGES.journals[0], text), expected, text);
		for (const [text, expected] of [['2027-02-28', '2027-02-28'], ['2027-02-29', ''], ['', ''], ['5', '']]) is(typedValue(RANGES.conferences[0], text), expected, text);
		for (const [text, expected] of [['1.500', '1500'], ['<$3k', '3000'], ['3k USD', '3000'], ['$2000+', '2000'], ['$2000', '2000'], ['$ 2,000.50', '2000.50'], ['2000 USD', '2000'], ['usd 1 500', '1500'], ['2.5', '2.5'], ['1.234.567', '1234567'], ['2000 EUR', ''], ['$', ''], ['', '']])
			is(typedValue(RANGES.journals[1], text), expected, text);
		for (const [ranges, expected] of [
			[{}, false], [{start_date_from: '2027-01-02', start_date_to: '2027-01-01'}, true], [{start_date_from: '2027-01-01', start_date_to: '2027-01-01'}, false],
			[{due_from: '2027-01-02', due_to: '2027-01-01'}, true], [{due_from: '2027-01-02', start_date_to: '2027-01-01'}, false],
		]) is(isReversed(ranges), expected, ranges);
	}],
	['a filter counts values that are not announced', (model, is) => {
		model.facets.setRegions(REGIONS);
		const index = new model.search.Index('conferences');
		index.add([['Here', 'Spain', ['A'], '2027-03-01'], ['Open', null, ['A'], '2027-03-01'], ['Elsewhere', 'Japan', ['A'], '2027-03-01'], ['Bare', null, [], null], ['Other', null, ['B'], '2027-03-01'], ['Over', null, ['A'], '2026-03-01']]
			.map(([name, country, therapy_areas, start_date]) => conference(name, {country, therapy_areas, start_date, tags: [], organizations: []})));
		for (const [address, names, unknown] of [
			['#/conferences?region=Europe', 'Here', 3], ['#/conferences?region=Europe&unknown=yes', 'Bare Here Open Other', 0], ['#/conferences?region=', 'Bare Open Other', 0],
			['#/conferences?region=Europe&area=A', 'Here', 2], ['#/conferences?region=Europe&area=A&unknown=yes', 'Bare Here Open', 0], ['#/conferences?area=B', 'Other', 1],
			['#/conferences?region=Europe&start_date_from=2027-01-01', 'Here', 3], ['#/conferences?region=Europe&start_date_from=2027-01-01&unknown=yes', 'Bare Here Open Other', 0],
			['#/conferences?region=Europe&start_date_to=2027-01-01', '', 2],
			// No tag is a value of its own.
			['#/conferences?tag=x', '', 0], ['#/conferences?tag=x&unknown=yes', '', 0], ['#/conferences', 'Bare Elsewhere Here Open Other', 0],
		]) {
			const found = model.select.select(index, {...model.question.parse(address), sort: 'name'}, TODAY);
			is([found.records.map(({name}) => name).join(' '), found.unknown], [names, unknown], address);
		}
	}],
	['ranges of days and numbers, and values that are not announced', (model, is) => {
		const made = [
			{name: 'Early', start_date: '2027-03-01', end_date: '2027-04-02', abstract_due_date: '2026-12-24'}, {name: 'Middle', start_date: '2027-05-31', abstract_due_date: '2027-01-10', late_breaking_due_date: '2027-03-10'},
			{name: 'Late', start_date: '9999-12-31', late_breaking_due_date: '9999-12-31'}, {name: 'Open', year: 2028}, {name: 'Over', year: 2026, start_date: '2026-03-01'},
		].map(fields => conference(fields.name, {abstract_due_date_status: 'estimated', late_breaking_due_date_status: 'confirmed', ...fields}));
		const conferences = new model.search.Index('conferences'), journals = new model.search.Index('journals');
		conferences.add(made);
		journals.add([['Cheap', 1.5, 0, 2, 4], ['Dear', 40.25, 9000, null, 12], ['Quiet', null, null, null, null], ['Half', 5, null, 6, null]].map(([name, impact_factor, apc_usd, min_weeks, max_weeks], at) =>
			({id: at + 1, name, impact_factor, publishing: {apc_usd}, timelines: {online_submit_to_accept: {min_weeks, max_weeks}}, organizations: [], tags: []})).concat({id: 9, name: 'Bare', organizations: [], tags: []}));
		const ask = address => {
			const question = model.question.parse(address), found = model.select.select(question.dataset === 'journals' ? journals : conferences, {...question, sort: 'name'}, TODAY);
			return [found.records.map(({name}) => name).join(' '), found.past, found.unknown, found.deadlines?.map(({date}) => date).join(' ')];
		};
		for (const [address, ...expected] of [
			['#/conferences', 'Early Late Middle Open', 1, 0], ['#/conferences?past=yes', 'Early Late Middle Open Over', 0, 0], ['#/conferences?year=2026', 'Over', 0, 0], ['#/conferences?year=2026&past=no', '', 1, 0],
			['#/conferences?start_date_from=2026-01-01&start_date_to=2027-05-30', 'Early Over', 0, 1], ['#/conferences?start_date_from=2026-01-01&start_date_to=2027-05-30&past=no', 'Early', 1, 1],
			['#/conferences?start_date_from=2027-03-01&start_date_to=2027-05-31', 'Early Middle', 0, 1], ['#/conferences?start_date_from=2027-03-02', 'Late Middle', 0, 1], ['#/conferences?start_date_from=9999-12-31', 'Late', 0, 1],
			['#/conferences?start_date_from=2027-03-02&unknown=yes', 'Late Middle Open', 0, 0], ['#/conferences?start_date_from=2028-01-01&start_date_to=2027-01-01', '', 0, 1], ['#/conferences?start_date_from=2027-03-02&year=2027', 'Late Middle', 0, 0],
			['#/conferences?due_from=2026-12-01', 'Early Late Middle', 0, 0, '2026-12-24 2027-01-10 2027-03-10 9999-12-31'], ['#/conferences?due_to=2027-01-31', 'Middle', 0, 0, '2027-01-10'],
			['#/conferences?due_from=2027-01-11&due_to=2027-12-31', 'Middle', 0, 0, '2027-03-10'], ['#/conferences?due_from=2027-01-11&deadline=abstract', '', 0, 0, ''],
			['#/conferences?due_from=2026-12-01&within=30', 'Middle', 0, 0, '2027-01-10'], ['#/conferences?due_from=2027-02-01&within=90', 'Middle', 0, 0, '2027-03-10'], ['#/conferences?due_to=2027-01-09&within=90', '', 0, 0, ''],
			['#/conferences?due_from=2026-12-01&due_to=2027-01-31&start_date_to=2027-03-01', 'Early', 0, 0, '2026-12-24'],
			['#/journals', 'Bare Cheap Dear Half Quiet', 0, 0], ['#/journals?impact_min=5', 'Dear Half', 0, 2], ['#/journals?impact_min=5.01', 'Dear', 0, 2], ['#/journals?impact_min=0', 'Cheap Dear Half', 0, 2],
			['#/journals?fee_max=0', 'Cheap', 0, 3], ['#/journals?fee_max=8999.99', 'Cheap', 0, 3], ['#/journals?fee_max=9000', 'Cheap Dear', 0, 3], ['#/journals?fee_max=9000&unknown=yes', 'Bare Cheap Dear Half Quiet', 0, 0],
			['#/journals?weeks_max=6', 'Cheap Half', 0, 2], ['#/journals?decision_max=2', '', 0, 5], ['#/journals?weeks_max=3', '', 0, 2], ['#/journals?weeks_max=6&fee_max=100', 'Cheap', 0, 3], ['#/journals?weeks_max=6&fee_max=100&q=half', '', 0, 1],
		]) is(ask(address), [...expected, ...expected.length < 4 ? [undefined] : []], address);
		// A year has the count that it gives when it is chosen, including past meetings.
		const years = address => counts(model.select.select(conferences, model.question.parse(address), TODAY), 'year');
		is([years('#/conferences'), years('#/conferences?year=2026'), years('#/conferences?past=no'), years('#/conferences?area=')], ['2026 1, 2027 3, 2028 1', '2026 1!, 2027 3, 2028 1', '2027 3, 2028 1', '2026 1, 2027 3, 2028 1']);
		is(counts(model.select.select(conferences, model.question.firstQuestion('conferences'), TODAY), 'dates'), 'not_found 4', 'other values count what is to come');
	}],
	['a shortlist has its records, and says how many are not there', (model, is) => {
		const {id} = CONFERENCES[2], over = CONFERENCES[3].id;
		for (const [ids, names, missing] of [[[id, over], 'Lung Sjögren', []], [[over, 4711, id, 4712], 'Lung Sjögren', [4711, 4712]], [[4711], '', [4711]], [[], '', []], [null, 'ESMO Lung Sjögren World 日本癌学会', []]]) {
			const found = answer(model, {ids});
			is([found.names, found.missing], [names, missing], JSON.stringify(ids));
		}
		is(answer(model, {ids: [id, over], words: 'lung'}).names, 'Lung', 'with other filters');
		is(counts(answer(model, {ids: [id, over]}), 'area'), 'Pulmonology 1, Rheumatology 1');
	}],
	['journals have the therapy areas that their tags name, and all have organizations', (model, is) => {
		const tag = (type, name) => ({id: 1, type, name}), journal = (name, tags, organizations = []) => ({name, tags, organizations: organizations.map(name => ({id: 1, name}))});
		const ask = records => {
			const index = new model.search.Index('journals');
			index.add(records.map((record, at) => ({id: at + 1, ...record})));
			return facets => model.select.select(index, {...model.question.firstQuestion('journals'), facets}, TODAY);
		};
		const some = ask([journal('A', [tag('Therapy area', 'Urology'), tag('Language', 'English')], ['Society', 'Society']), journal('B', [tag('therapeutic Area', 'Oncology')]), journal('C', [])]);
		is([counts(some({}), 'area'), counts(some({}), 'organization'), some({area: ['Urology']}).records.map(({name}) => name)], ['Oncology 1, Urology 1, ? 1', 'Society 1, ? 2', ['A']]);
		const none = ask([journal('A', [tag('Area', 'Urology')])]);
		is([counts(none({}), 'area'), counts(none({}), 'organization'), counts(none({area: ['Urology']}), 'area')], ['', '', 'Urology 0!, ? 1'], 'a facet that no record has');
		is(counts(answer(model, {}), 'organization'), 'European Alliance 1, ? 4');
	}],
	['columns sort, and empty values are last', (model, is) => {
		for (const [sort, descending, names] of [
			['name', true, '日本癌学会 World Sjögren Lung ESMO'], ['deadline', false, 'Lung World ESMO Sjögren 日本癌学会'], ['deadline', true, 'ESMO World Lung Sjögren 日本癌学会'],
			['place', false, 'Sjögren Lung 日本癌学会 ESMO World'], ['place', true, 'World ESMO 日本癌学会 Lung Sjögren'], ['start', true, 'ESMO World Sjögren Lung 日本癌学会'],
		]) is(answer(model, {sort, descending}).names, names, sort);
	}],
	['a changed index answers like a new one', (model, is) => {
		model.facets.setRegions(REGIONS);
		const index = new model.search.Index('conferences'), copy = new model.copy.Copy('conferences');
		copy.load(CONFERENCES);
		index.add(CONFERENCES);
		const ask = of => model.select.select(of, {...model.question.firstQuestion('conferences'), words: 'lung'}, TODAY);
		ask(index);
		index.apply([{...CONFERENCES[0], name: 'Lung Congress'}, {id: 2, deleted: true}, {...CONFERENCES[1], id: 77}].map(entry => copy.apply(entry)));
		const fresh = new model.search.Index('conferences');
		fresh.add(copy.list());
		is(ask(index), ask(fresh));
		is(index.size, 5);
		is(model.select.select(index, model.question.firstQuestion('conferences'), '2027-03-01').records.map(({id}) => id), [1, 3, 4, 5, 77], 'on another day');
		// After many changes the index is built again.
		for (let at = 0; at < 6000; at++) index.apply([copy.apply({...CONFERENCES[0], name: `Lung ${at}`})]);
		is(index.records.length < 6000, true, 'unused slots are given back');
		const again = new model.search.Index('conferences');
		again.add(copy.list());
		is(ask(index), ask(again));
	}],
	['journals', (model, is) => {
		const journal = (id, name, publisher, access, apc_usd) => ({id, name, abbv: null, publisher, issn_print: '1234-5678', issn_online: `8765-432${id}`, publishing: {access, apc_usd, content_license: 'CC BY'}, timelines: {}, organizations: [], tags: []});
		const index = new model.search.Index('journals');
		index.add([journal(1, 'Annals', 'Elsevier', 'hybrid', 3000), journal(2, 'Blood', 'ASH', 'open', 0), journal(3, 'Cell', 'Elsevier', null, null)]);
		const found = given => model.select.select(index, {...model.question.firstQuestion('journals'), ...given}, TODAY);
		is(found({}).total, 3);
		is(counts(found({}), 'fee'), '0 1, 2500-5000 1, ? 1');
		is(counts(found({}), 'access'), 'hybrid 1, open 1, ? 1');
		is(counts(found({}), 'publisher'), 'Elsevier 2, ASH 1');
		is(found({facets: {access: ['open', 'hybrid'], publisher: ['Elsevier']}}).records.map(({name}) => name), ['Annals']);
		is(found({words: '1234-5678 cell'}).total, 1);
		is(found({words: '8765-4322'}).records.map(({name}) => name), ['Blood']);
		is(found({sort: 'fee', descending: true}).records.map(({id}) => id), [1, 2, 3]);
	}],

	['a period ends with its last day, and begins today', (model, is) => {
		model.facets.setRegions(REGIONS);
		const days = (today, within, mode) => {
			const {addDays} = model.deadlines, index = new model.search.Index('conferences');
			index.add([-1, 0, 1, within - 1, within, within + 1].map(after => ({...conference(`${after}`), abstract_due_date: addDays(today, after), abstract_due_date_status: 'confirmed'})));
			const found = model.select.select(index, {...model.question.firstQuestion('conferences'), within, mode}, today);
			return [found.records.map(({name}) => +name), found.deadlines.map(({record}) => +record.name), found.total];
		};
		for (const today of ['2026-12-01', '2026-12-31', '2027-02-27', '2027-03-13', '2027-10-30', '2028-02-28']) for (const within of [30, 60, 90]) for (const mode of ['list', 'deadlines']) {
			const expected = [0, 1, within - 1, within];
			is(days(today, within, mode), [expected, expected, 4], `${within} days from ${today}`);
		}
	}],
	['ties are by id, and empty values are last in both directions', (model, is) => {
		const journal = (id, apc_usd, name = 'Same') => ({id, name, publishing: {access: null, apc_usd}, timelines: {online_submit_to_accept: {min_weeks: id % 2 ? 0 : null}}, organizations: [], tags: []});
		const index = new model.search.Index('journals');
		index.add([journal(9, null), journal(4, 0), journal(7, 0), journal(2, 500), journal(1, null), journal(5, 0)]);
		const ids = (sort, descending = false) => model.select.select(index, {...model.question.firstQuestion('journals'), sort, descending}, TODAY).records.map(({id}) => id);
		is([ids('fee'), ids('fee', true)], [[4, 5, 7, 2, 1, 9], [2, 7, 5, 4, 1, 9]]);
		is(ids('name'), [1, 2, 4, 5, 7, 9]);
		is([ids('access'), ids('access', true)], [[1, 2, 4, 5, 7, 9], [1, 2, 4, 5, 7, 9]], 'all are empty');
		is([ids('acceptance'), ids('impact', true)], [[1, 5, 7, 9, 2, 4], [1, 2, 4, 5, 7, 9]]);
		// A changed record takes its new place, also among those that are equal.
		index.apply([{id: 4, after: journal(4, 500)}, {id: 9, after: journal(9, 0)}, {id: 7, after: null}]);
		is([ids('fee'), ids('fee', true)], [[5, 9, 2, 4, 1], [4, 2, 9, 5, 1]]);
	}],
	['fees have their bounds in the lower class', (model, is) => {
		const index = new model.search.Index('journals');
		const fees = [0, 1, 999, 1000, 1001, 2500, 2501, 5000, 5001, null];
		index.add(fees.map((apc_usd, at) => ({id: at + 1, name: `${apc_usd}`, publishing: {apc_usd}, timelines: {}, organizations: [], tags: []})));
		const found = (...fee) => model.select.select(index, {...model.question.firstQuestion('journals'), sort: 'fee', ...fee.length && {facets: {fee}}}, TODAY);
		is(counts(found(), 'fee'), '0 1, 0-1000 3, 1000-2500 2, 2500-5000 2, 5000- 1, ? 1');
		for (const [fee, names] of [['0', ['0']], ['0-1000', ['1', '999', '1000']], ['1000-2500', ['1001', '2500']], ['2500-5000', ['2501', '5000']], ['5000-', ['5001']]]) {
			is(found(fee).records.map(({name}) => name), names, fee);
		}
		is(found('0', '5000-').total, 2, 'two classes');
	}],
	['counts change with removals, and a chosen value stays', (model, is) => {
		model.facets.setRegions(REGIONS);
		const index = new model.search.Index('conferences'), made = ['Spain', 'Spain', 'Japan'].map(country => conference(country, {country, therapy_areas: ['Oncology', 'Cardiology']}));
		index.add(made);
		const found = facets => model.select.select(index, {...model.question.firstQuestion('conferences'), facets}, TODAY);
		is([counts(found({}), 'country'), counts(found({}), 'area')], ['Spain 2, Japan 1', 'Cardiology 3, Oncology 3']);
		index.apply([{id: made[2].id, after: null}, {id: made[0].id, after: {...made[0], therapy_areas: ['Oncology']}}]);
		is([counts(found({}), 'country'), counts(found({}), 'area'), counts(found({}), 'region')], ['Spain 2', 'Oncology 2, Cardiology 1', 'Europe 2']);
		is(counts(found({country: ['Japan']}), 'country'), 'Spain 2, Japan 0!');
		is(counts(found({area: ['Oncology', 'Cardiology']}), 'area'), 'Oncology 2!, Cardiology 1!');
		is(found({area: ['Oncology', 'Cardiology'], country: ['Spain']}).total, 2);
		// A record that misses two choices counts nowhere.
		const none = found({area: ['Nephrology'], country: ['Japan']});
		is([none.total, counts(none, 'area'), counts(none, 'country'), counts(none, 'region')], [0, 'Nephrology 0!', 'Japan 0!', '']);
	}],
	['two deadlines of one confidence count once', (model, is) => {
		const index = new model.search.Index('conferences');
		index.add([conference('A', {abstract_due_date: '2027-02-01', abstract_due_date_status: 'confirmed', late_breaking_due_date: '2027-03-01', late_breaking_due_date_status: 'confirmed'})]);
		const found = given => model.select.select(index, {...model.question.firstQuestion('conferences'), ...given}, TODAY);
		is(counts(found({mode: 'deadlines'}), 'confidence'), 'confirmed 1');
		is(counts(found({}), 'confidence'), 'confirmed 1');
		is(found({mode: 'deadlines', facets: {confidence: ['confirmed']}}).deadlines.length, 2);
		is(found({mode: 'deadlines', within: 31}).deadlines.map(({kind}) => kind), ['abstract']);
	}],
	['thirty words count, and more do not', (model, is) => {
		const words = Array.from({length: 40}, (_, at) => `w${at + 10}`), index = new model.search.Index('conferences');
		index.add([conference(words.join(' ')), conference(words.slice(0, 29).join(' '))]);
		const total = asked => model.select.select(index, {...model.question.firstQuestion('conferences'), words: asked.join(' ')}, TODAY).total;
		is([words.slice(0, 29), words.slice(0, 30), words, [...words.slice(0, 30), 'nothing'], [...words.slice(0, 29), 'nothing'], ['nothing', ...words]].map(total), [2, 1, 1, 1, 0, 0]);
	}],
	['regions are those that were set last', ({facets: {namesOf, regionOf, setRegions}}, is) => {
		setRegions({Europe: 'The Netherlands,holland|Bosnia and Herzegovina', Asia: 'Türkiye,turkey'});
		is(['Netherlands', 'the netherlands', 'Holland', 'Bosnia & Herzegovina', 'TURKIYE', 'Atlantis', '', null].map(name => regionOf(name)), ['Europe', 'Europe', 'Europe', 'Europe', 'Asia', undefined, undefined, undefined]);
		is(namesOf('holland'), ['The Netherlands', 'holland']);
		setRegions({Eurasia: 'Türkiye'});
		is([regionOf('Türkiye'), regionOf('turkey'), regionOf('Holland'), namesOf('Holland')], ['Eurasia', undefined, undefined, []]);
	}],
	['every text of a record is searched, and a missing one is no word', (model, is) => {
		model.facets.setRegions(REGIONS);
		const found = (dataset, record, words) => {
			const index = new model.search.Index(dataset);
			index.add([record]);
			return model.select.select(index, {...model.question.firstQuestion(dataset), words}, TODAY).total;
		};
		const links = {organizations: [{id: 1, name: 'Society', abbv: null}, {id: 2, name: 'Alliance', abbv: 'ALLY'}], tags: [{id: 1, type: 'Audience', name: 'Nurses'}]};
		const meeting = conference('Congress', {abbv: 'CGR', country: 'Spain', city: 'Madrid', venue: 'Fairground', therapy_areas: ['Oncology', 'Urology'], ...links});
		for (const words of ['congress', 'cgr', '2027', 'spain', 'europe', 'madrid', 'fairground', 'oncology', 'urology', 'society', 'alliance', 'ally', 'nurses']) is(found('conferences', meeting, words), 1, words);
		for (const words of ['muenchen', 'munchen', 'münchen', 'koelner', 'kolner', 'kölner']) is(found('conferences', {...meeting, city: 'München', venue: 'Kölner Hof'}, words), 1, words);
		is(found('conferences', {...meeting, city: 'Lubeck'}, 'luebeck'), 0, 'a text without the letter');
		for (const [city, words, total] of [['Munich', 'München', 1], ['Munich', 'muenchen', 1], ['München', 'munich', 1], ['Wien', 'vienna', 1], ['Vienna', 'wien', 1], ['Geneva', 'Genève', 1],
			['The Hague', 'den haag', 1], ['Rome', 'roma', 1], ['Romeville', 'roma', 0], ['Madrid', 'munich', 0], [null, 'munich', 0]]) is(found('conferences', {...meeting, city}, words), total, `${city} ${words}`);
		const journal = {id: 1, name: 'Annals', abbv: 'ANN', publisher: 'Press', issn_print: '1234-5678', issn_online: '8765-4321', publishing: {access: 'hybrid'}, timelines: {}, ...links};
		for (const words of ['annals', 'ann', 'press', '1234', '8765', 'hybrid', 'society', 'ally', 'nurses']) is(found('journals', {...journal, name: words === 'ann' ? 'Name' : journal.name}, words), 1, words);
		for (const words of ['null', 'undefined', 'object']) is([found('conferences', {...meeting, abbv: null}, words), found('journals', {...journal, abbv: null}, words)], [0, 0], words);
	}],
	['a value counts more than 255 records', (model, is) => {
		const index = new model.search.Index('conferences');
		index.add(Array.from({length: 300}, (_, at) => conference(`${at}`, {therapy_areas: at < 256 ? ['Oncology'] : ['Urology']})));
		is(counts(model.select.select(index, model.question.firstQuestion('conferences'), TODAY), 'area'), 'Oncology 256, Urology 44');
	}],
	['small and capital letters are sorted alike, and numbers by their size', (model, is) => {
		const index = new model.search.Index('journals'), factors = [9.5, 10, 0, null, 0.7, 100];
		index.add(['apex', 'Bone', 'cell', 'Derma', 'Émile', 'iMed'].map((name, at) => ({id: 9 - at, name, publisher: name, impact_factor: factors[at], publishing: {}, timelines: {}, organizations: [], tags: []})));
		const names = (sort, descending = false) => model.select.select(index, {...model.question.firstQuestion('journals'), sort, descending}, TODAY).records.map(({name}) => name).join(' ');
		is([names('name'), names('publisher', true)], ['apex Bone cell Derma Émile iMed', 'iMed Émile Derma cell Bone apex']);
		is([names('impact'), names('impact', true)], ['cell Émile apex Bone iMed Derma', 'iMed Bone apex Émile cell Derma']);
	}],
	['a list that is sorted downwards has its deadlines in their order', (model, is) => {
		const found = descending => answer(model, {mode: 'deadlines', sort: 'deadline', descending});
		is([found(false).names, found(true).names], ['Lung World ESMO', 'ESMO World Lung']);
		for (const descending of [false, true]) is(found(descending).deadlines.map(({date}) => date), ['2027-01-05', '2027-01-20', '2027-02-15', '2027-06-01'], `${descending}`);
	}],
];
