const congress = (id, abbv, name, more) => ({id, abbv, name, year: 2027, therapy_areas: [], organizations: [], tags: [], updated_at: '', ...more});
const journal = (id, abbv, name, more) => ({id, abbv, name, publishing: {}, timelines: {}, organizations: [], tags: [], updated_at: '', ...more});

/** The short names of what words find, in their order. */
const found = (model, dataset, records, words, more) => {
	const index = new model.search.Index(dataset);
	index.add(records);
	return model.select.select(index, {...model.question.firstQuestion(dataset), words, ...more}, '2027-01-01').records.map(({abbv}) => abbv).join(' ');
};

export const cases = [
	['what fits best comes first: the short name, each word, the beginning, then the order of the list', (model, is) => {
		const congresses = [congress(1, 'SCI', 'Heart Sessions', {organizations: [{id: 1, name: 'AHA'}], abstract_due_date: '2027-01-02'}), congress(2, 'AHA EPI', 'AHA Epidemiology', {abstract_due_date: '2027-01-03'}),
			congress(3, 'AHA', 'American Heart Association', {abstract_due_date: '2027-06-01'}), congress(4, 'ESMO ASIA', 'ESMO Asia', {}), congress(5, 'ESMO', 'European Society', {}), congress(6, 'ESMO', 'European Society', {year: 2026})];
		for (const [words, expected] of [['AHA', 'AHA AHA EPI SCI'], ['aha', 'AHA AHA EPI SCI'], ['heart', 'SCI AHA'], ['american heart association', 'AHA'], ['esmo 27', 'ESMO ESMO ASIA'], ['ESMO 2027', 'ESMO ESMO ASIA'], ['esmo asia', 'ESMO ASIA']]) {
			is(found(model, 'conferences', congresses, words), expected, words);
		}
		is(found(model, 'conferences', congresses, 'aha', {sort: 'name', descending: true}), 'AHA AHA EPI SCI', 'the chosen order is for names that fit alike');
		const journals = [journal(1, 'ANM', 'Annals of Natural Medicine'), journal(2, 'NEJM', 'The New England Journal of Medicine'), journal(3, 'JCO', 'Journal of Clinical Oncology'), journal(4, 'NM', 'Nature Medicine'),
			journal(5, 'JCOP', 'Journal of Clinical Oncology Practice'), journal(6, 'BMJO', 'BMJ Open'), journal(7, 'BMJ', 'British Medical Journal'), journal(8, 'JNCCN', 'Journal of the National Comprehensive Cancer Network')];
		for (const [words, expected] of [['Nat Med', 'NM ANM'], ['J Clin Oncol', 'JCO JCOP'], ['N Engl J Med', 'NEJM'], ['BMJ', 'BMJ BMJO'], ['J Natl Compr Canc Netw', 'JNCCN']]) is(found(model, 'journals', journals, words).slice(0, expected.length), expected, words);
	}],
	['months, years, states and formats are words; a minus leaves out', (model, is) => {
		const congresses = [congress(1, 'A', 'First', {start_date: '2027-03-05', end_date: '2027-03-07', abstract_due_date: '2027-02-01', abstract_due_date_status: 'confirmed'}), congress(2, 'B', 'Second', {start_date: '2028-03-05', year: 2028, late_breaking_due_date: '2028-01-01', late_breaking_due_date_status: 'not_found'}),
			congress(3, 'C', 'Mayo Course', {city: 'Online', formats: {poster: true}, start_date: '2027-05-02'})];
		for (const [words, expected] of [
			['march 2027', 'A'], ['mar 2027', 'A'], ['03/2027', 'A'], ['3.2027', 'A'], ['13/2027', ''], ['march', 'A B'], ['mar', 'A B'], ['jan', 'B'], ['may', 'C'], ['mayo', 'C'], ['march 2028', 'B'], ['feb 2027', 'A'], ['28', 'B'], ['late-breaking', 'B'], ['confirmed', 'A'], ['not found', 'B'],
			['15 march 2027', ''], ['5 march 2027', 'A'], ['march 5, 2027', 'A'], ['2027-03-07', 'A'], ['7.3.2027', 'A'], ['2027-03-08', ''], ['1 feb. 2027', 'A'], ['2027-13-01', ''], ['2027-03', 'A'], ['2027/03', 'A'],
			['LBA', 'B'], ['late breakers', 'B'], ['course in the', ''], ['in course', 'C'], ['virtual', 'C'], ['poster', 'C'], ['-mayo', 'A B'], ['march -2028', 'A'], ['-march', 'C'], ['first -march', ''], ['-', 'A B C'], ['- mayo', 'C'],
		]) is([...found(model, 'conferences', congresses, words, {past: 'yes'}).split(' ')].sort().join(' '), expected, words);
		const journals = [journal(1, 'G', 'One', {publishing: {access: 'open', content_license: 'CC BY 4.0'}, issn_print: '1234-567X'}), journal(2, 'H', 'Two', {publishing: {access: 'hybrid'}})];
		for (const [words, expected] of [['CC BY', 'G'], ['cc-by', 'G'], ['hybrid', 'H'], ['-hybrid', 'G'], ['1234567x', 'G'], ['1234-567X', 'G']]) is(found(model, 'journals', journals, words), expected, words);
		const index = new model.search.Index('conferences');
		index.add(congresses);
		for (const [words, expected] of [['mayo zzz', ['zzz']], ['march 2030', ['03/2030']], ['1 may 2030 mayo', ['2030-05-01']], ['first second', []], ['-zzz', []], ['', []]]) is(index.unknownWords(words), expected, words);
		for (const [words, unwanted, expected] of [['mayo zzz', ['zzz'], 'mayo'], ['march 2030 -first', ['03/2030'], '-first'], ['late-breaking zzz', ['zzz'], 'late-breaking'], ['zzz', ['zzz'], '']]) is(model.words.withoutTyped(words, unwanted), expected, words);
	}],
	['British and American spellings find each other, and initials find a journal', (model, is) => {
		const journals = [journal(1, 'A', 'Haematologica'), journal(2, 'B', 'Blood Hematology'), journal(3, 'C', 'The New England Journal of Medicine'), journal(4, 'D', 'Tumor Biology')];
		for (const [words, expected] of [['haematology', 'B'], ['hematologica', 'A'], ['haematol', 'A B'], ['hematol', 'A B'], ['tumour', 'D'], ['NEJM', 'C'], ['nej', ''], ['paediatrics', '']]) is(found(model, 'journals', journals, words).split(' ').sort().join(' '), expected, words);
	}],
];
