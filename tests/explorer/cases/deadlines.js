const record = {id: 1, abstract_due_date: '2027-03-10', abstract_due_date_status: 'confirmed', late_breaking_due_date: '2027-02-01', late_breaking_due_date_status: 'copied'};

export const cases = [
	['deadlines in a period', ({deadlines: {deadlinesOf}}, is) => {
		const kinds = (options, of = record) => deadlinesOf(of, options).map(({kind}) => kind).join(' ');
		is(kinds(), 'late_breaking abstract');
		is(kinds({from: '2027-02-01', to: '2027-03-09'}), 'late_breaking');
		is(kinds({from: '2027-02-02', to: '2027-03-10'}), 'abstract');
		is(kinds({kind: 'abstract'}), 'abstract');
		is(kinds({}, {...record, abstract_due_date: null}), 'late_breaking');
		is(deadlinesOf(record, {from: '2027-02-02'}), [{record, kind: 'abstract', date: '2027-03-10', confidence: 'confirmed'}]);
	}],
	['days', ({deadlines: {addDays, daysBetween, todayOf}}, is) => {
		for (const [day, days, expected] of [['2026-12-31', 1, '2027-01-01'], ['2028-02-28', 1, '2028-02-29'], ['2027-03-01', -1, '2027-02-28'], ['2027-03-27', 2, '2027-03-29']]) {
			is(addDays(day, days), expected);
			is(daysBetween(day, expected), days);
		}
		is(todayOf(new Date(2027, 0, 5, 23, 59)), '2027-01-05');
	}],
	['months', ({deadlines: {byMonth}}, is) => {
		const days = ['2027-01-05', '2027-01-31', '2027-03-01'].map(date => ({date}));
		is(byMonth(days).map(({month, deadlines}) => [month, deadlines.length]), [['2027-01', 2], ['2027-03', 1]]);
		is(byMonth([]), []);
	}],
];
