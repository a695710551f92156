/** The filters of typed words, and the words that stay. */
const read = ({question, typed}, dataset, words) => {
	const asked = typed.understood({...question.firstQuestion(dataset), words}, '2026-11-27');
	return question.filtersOf({...asked, words: '', past: 'yes'}).map(({text}) => text).filter(text => text !== 'with past ones').concat(asked.words || []).join('; ');
};

export const cases = [
	['days of the week and two years are filters of conferences', (model, is) => {
		for (const [words, expected] of [
			['weekend', 'due on a Saturday or Sunday'], ['Weekends', 'due on a Saturday or Sunday'], ['saturday', 'due on a Saturday'], ['deadlines on weekends', 'due on a Saturday or Sunday'], ['due on a sunday oncology', 'due on a Sunday; oncology'],
			['esmo saturday or sunday', 'due on a Saturday or Sunday; esmo'], ['monday, friday', 'due on a Monday or Friday'], ['monday esmo friday', 'due on a Friday; esmo'], ['"weekend"', '"weekend"'], ['-weekend', '-weekend'], ['weekender', 'weekender'], ['sat', 'sat'],
			['aacr 2026 2027', '2026; 2027; aacr'], ['aacr 2026 and 2027', '2026; 2027; aacr'], ['2026/2027', '2026; 2027'], ['2026/27 aacr', '2026; 2027; aacr'], ['aacr 2025-2027', '2025; 2026; 2027; aacr'], ['2027, 2026', '2027; 2026'],
			['aacr 2027', 'aacr 2027'], ['aacr 2027 2027', 'aacr 2027 2027'], ['march 2027 2028', 'march 2027 2028'], ['march 2027 chicago', 'march 2027 chicago'], ['03/2027', '03/2027'], ['2027-06', '2027-06'], ['2027-01-15', '2027-01-15'], ['', ''], ['mfk_x weekend', 'mfk_x weekend'],
		]) is(read(model, 'conferences', words), expected, words);
	}],
	['periods of deadlines and unsure dates are filters of conferences', (model, is) => {
		const due = (from, to) => `due from ${model.deadlines.date(from)}; due until ${model.deadlines.date(to)}`;
		for (const [words, expected] of [
			['in 30 days', 'due in the next 30 days'], ['next 60 days oncology', 'due in the next 60 days; oncology'], ['deadlines within the next 2 weeks', 'due in the next 14 days'], ['due in 3 months', 'due in the next 90 days'], ['in the next day', 'in the next day'], ['in 0 days', 'in 0 days'], ['12 weeks', 'due in the next 84 days'],
			['today', due('2026-11-27', '2026-11-27')], ['due tomorrow', due('2026-11-28', '2026-11-28')], ['this week', due('2026-11-27', '2026-11-29')], ['due next week', due('2026-11-30', '2026-12-06')], ['this month', due('2026-11-27', '2026-11-30')], ['next month', due('2026-12-01', '2026-12-31')],
			['deadlines in january', due('2027-01-01', '2027-01-31')], ['due Feb 2028', due('2028-02-01', '2028-02-29')], ['esmo deadline for march', `${due('2027-03-01', '2027-03-31')}; esmo`], ['deadline november', due('2026-11-27', '2026-11-30')], ['due process', 'due process'], ['deadline', 'deadline'],
			['not confirmed', 'Confidence of deadlines: estimated; Confidence of deadlines: copied; Confidence of deadlines: not found; Confidence of deadlines: in check'], ['confirmed', 'confirmed'], ['"next week"', '"next week"'],
		]) is(read(model, 'conferences', words), expected, words);
		is(model.typed.understood({...model.question.firstQuestion('conferences'), words: 'this week'}, '2026-11-29').ranges, {due_from: '2026-11-29', due_to: '2026-11-29'}, 'a week ends on Sunday');
	}],
	['figures are filters of journals', (model, is) => {
		const [impact, fee, weeks] = ['impact factor of at least 5', 'fee of at most 3,000 US dollars', 'at most 12 weeks to acceptance'];
		for (const [words, expected] of [
			['impact >5', impact], ['impact > 5', impact], ['IF>5', impact], ['impact factor of at least 5', impact], ['impact 5+', impact], ['impact over 5 oncology', `${impact}; oncology`], ['impact 2,5', 'impact factor of at least 2.5'],
			['fee <3k', fee], ['fee < 3000', fee], ['fee under $3,000', fee], ['APC up to 3000 USD', fee], ['fees at most 3.000', fee],
			['12 weeks', weeks], ['<12 weeks', weeks], ['within 12 weeks', weeks], ['12 wks', weeks], ['accepted in 12 weeks', weeks], ['12 weeks to acceptance', weeks], ['decision 4 weeks', 'at most 4 weeks to a first decision'], ['4 weeks to first decision', 'at most 4 weeks to a first decision'],
			['no fee', 'No fee'], ['without a fee', 'No fee'], ['no fee impact >5', `No fee; ${impact}`], ['oncology no APC 12 weeks', `No fee; ${weeks}; oncology`],
			['gold', 'open'], ['open access oncology', 'open; oncology'], ['Gold OA', 'open'], ['gold coast', 'open; coast'], ['"open access"', '"open access"'], ['openness', 'openness'],
			['impact <5', 'impact <5'], ['fee >3000', 'fee >3000'], ['> 12 weeks', '> 12 weeks'], ['>12 weeks', '>12 weeks'], ['over 12 weeks', 'over 12 weeks'], ['impact', 'impact'], ['impact journal', 'impact journal'], ['5', '5'], ['"no fee"', '"no fee"'], ['weekend', 'weekend'], ['2026 2027', '2026 2027'],
		]) is(read(model, 'journals', words), expected, words);
	}],
	['deadlines on days of the week are found, counted and shown, and no others', (model, is) => {
		const congress = (id, more) => ({id, abbv: `C${id}`, name: 'x', year: 2027, therapy_areas: [], organizations: [], tags: [], updated_at: '', abstract_due_date_status: 'confirmed', late_breaking_due_date_status: 'confirmed', ...more});
		const index = new model.search.Index('conferences');
		// A Saturday and a Monday, a Sunday, a Friday, and a Saturday that has passed.
		index.add([congress(1, {abstract_due_date: '2027-03-06', late_breaking_due_date: '2027-03-08'}), congress(2, {late_breaking_due_date: '2027-03-07'}), congress(3, {abstract_due_date: '2027-03-05'}), congress(4, {abstract_due_date: '2027-01-02'})]);
		for (const [words, expected] of [['weekend', '1 2027-03-06, 2 2027-03-07'], ['saturday', '1 2027-03-06'], ['monday', '1 2027-03-08'], ['wednesday', ''], ['"weekend"', '']]) {
			const {records, deadlines} = model.select.select(index, model.typed.understood({...model.question.firstQuestion('conferences'), words, mode: 'deadlines'}, '2027-02-01'), '2027-02-01');
			is(deadlines.map(({record, date}) => `${record.id} ${date}`).join(', '), expected, words);
			is(records.length, deadlines.length, words);
		}
		const hash = '#/conferences?due_on=saturday,sunday';
		is(model.question.format(model.question.parse(hash)), hash);
		is(model.question.unknownOf('#/conferences?due_on=funday'), ['due_on=funday']);
	}],
];
