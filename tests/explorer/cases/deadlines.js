const record = {id: 1, abstract_due_date: '2027-03-10', abstract_due_date_status: 'confirmed', late_breaking_due_date: '2027-02-01', late_breaking_due_date_status: 'copied'};

export const cases = [
	['deadlines in a period, of which the first and the last day are a part', ({deadlines: {deadlinesOf}}, is) => {
		const kinds = (options, of = record) => deadlinesOf(of, options).map(({kind}) => kind).join(' ');
		is(kinds(), 'late_breaking abstract');
		is(kinds({from: '2027-02-01', to: '2027-03-09'}), 'late_breaking');
		is(kinds({from: '2027-02-02', to: '2027-03-10'}), 'abstract');
		is(kinds({kind: 'abstract'}), 'abstract');
		is(kinds({}, {...record, abstract_due_date: null}), 'late_breaking');
		is(deadlinesOf(record, {from: '2027-02-02'}), [{record, kind: 'abstract', date: '2027-03-10', confidence: 'confirmed'}]);
		is(kinds({from: '2027-03-10', to: '2027-03-10'}), 'abstract');
		is(kinds({from: '2027-03-11'}), '');
		is(kinds({from: '2027-02-01', to: '2027-02-01'}), 'late_breaking');
		is(kinds({}, {...record, late_breaking_due_date: record.abstract_due_date}), 'abstract late_breaking', 'two of a day keep their order');
		is(kinds({kind: 'late_breaking', from: '2027-02-02'}), '');
	}],
	// The clocks of Europe and America change within these days, and a day then has 23 or 25 hours.
	['days across year ends, leap days and changes of the clock', ({deadlines: {addDays, daysBetween}}, is) => {
		for (const [day, days, expected] of [
			['2026-12-01', 30, '2026-12-31'], ['2026-12-02', 30, '2027-01-01'], ['2026-11-22', 60, '2027-01-21'], ['2026-12-31', 90, '2027-03-31'],
			['2027-03-13', 1, '2027-03-14'], ['2027-03-14', 1, '2027-03-15'], ['2027-03-01', 30, '2027-03-31'], ['2027-10-31', 1, '2027-11-01'], ['2027-11-06', 1, '2027-11-07'],
			['2027-11-07', 1, '2027-11-08'], ['2027-10-20', 30, '2027-11-19'], ['2028-01-31', 30, '2028-03-01'], ['2027-01-31', 30, '2027-03-02'], ['2027-06-15', 365, '2028-06-14'], ['2027-06-15', 0, '2027-06-15'], ['2027-03-01', -1, '2027-02-28'],
		]) {
			is(addDays(day, days), expected, `${day} and ${days} days`);
			is(daysBetween(day, expected), days, `from ${day} to ${expected}`);
			is(addDays(expected, -days), day, `${days} days before ${expected}`);
		}
		for (const [day, days] of [['9999-12-31', 1], ['9999-12-01', 9999], ['9999-12-30', 1]]) is(addDays(day, days), '9999-12-31', 'the last day');
	}],
	["the day is the reader's own, from the first minute to the last", ({deadlines: {todayOf}}, is) => {
		for (const [year, month, day, expected] of [[2027, 0, 1, '2027-01-01'], [2026, 11, 31, '2026-12-31'], [2027, 8, 9, '2027-09-09'], [2028, 1, 29, '2028-02-29'], [2027, 9, 10, '2027-10-10']]) {
			is([[0, 0], [0, 1], [12, 0], [23, 59]].map(time => todayOf(new Date(year, month, day, ...time))), Array(4).fill(expected));
		}
	}],
	['a month is of one year', ({deadlines: {byMonth}}, is) => {
		const days = ['2026-12-31', '2027-01-01', '2027-12-01', '2028-01-31', '2028-01-31'].map(date => ({date}));
		is(byMonth([days[0], days[2]]).map(({month}) => month), ['2026-12', '2027-12']);
		is(byMonth([]), []);
		is(byMonth(days), [['2026-12', 0, 1], ['2027-01', 1, 2], ['2027-12', 2, 3], ['2028-01', 3, 5]].map(([month, from, to]) => ({month, from, deadlines: days.slice(from, to)})));
	}],
];
