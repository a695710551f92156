export const cases = [
	['addresses and questions', ({question: {firstQuestion, format, parse}}, is) => {
		for (const [address, given, written = address] of [
			['#/conferences', {}],
			['#/journals', {dataset: 'journals', sort: 'name'}],
			['#/conferences?q=esmo+2027', {words: 'esmo 2027'}],
			['#/conferences?area=Oncology&region=Asia&region=Europe&deadline=abstract&within=60', {facets: {area: ['Oncology'], region: ['Asia', 'Europe']}, kind: 'abstract', within: 60}],
			['#/conferences?view=deadlines&within=90&sort=name&order=desc', {mode: 'deadlines', within: 90, sort: 'name', descending: true}],
			['#/conferences?country=C%C3%B4te+%26+Co%3D%2B', {facets: {country: ['Côte & Co=+']}}],
			// Unknown values are left out.
			['#conferences/?within=-1&sort=constructor&view=x&order=up&deadline=toString&nothing=1', {}, '#/conferences'],
			// Records without a value.
			['#/conferences?area=&region=Asia&region=', {facets: {area: [''], region: ['Asia', '']}}],
			['#/conferences?area&country=', {facets: {area: [''], country: ['']}}, '#/conferences?area=&country='],
			['#/conferences?ids=12,40', {ids: [12, 40]}],
			['#/conferences?ids=12,40,x,12,0,-1,1e3,9999999999999999', {ids: [12, 40]}, '#/conferences?ids=12,40'],
			['#/conferences?ids=9007199254740991,9007199254740992', {ids: [9007199254740991]}, '#/conferences?ids=9007199254740991'],
			['#/conferences?ids=', {ids: []}],
			['#/conferences?ids=x', {}, '#/conferences'],
			['#/conferences?q=ids%3D1%2C2&ids=1,2&area=a%2Cids%3D3%2C4', {words: 'ids=1,2', ids: [1, 2], facets: {area: ['a,ids=3,4']}}],
			['#/conferences?start_date_from=2027-01-01&start_date_to=9999-12-31&due_from=2026-02-28&due_to=2028-02-29&unknown=yes&past=no',
				{ranges: {start_date_from: '2027-01-01', start_date_to: '9999-12-31', due_from: '2026-02-28', due_to: '2028-02-29'}, unknown: true, past: 'no'}],
			['#/conferences?start_date_from=2027-02-29&due_to=today&impact_min=2', {}, '#/conferences'],
			['#/journals?impact_min=0.0&fee_max=2500&weeks_max=8', {dataset: 'journals', sort: 'name', ranges: {impact_min: '0.0', fee_max: '2500', weeks_max: '8'}}],
			['#/journals?fee=', {dataset: 'journals', sort: 'name', facets: {fee: ['']}}],
			['#/journals?within=60&view=deadlines&deadline=abstract&region=Europe', {dataset: 'journals', sort: 'name'}, '#/journals'],
		]) {
			const question = {...firstQuestion('conferences'), ...given};
			is(parse(address), question, address);
			is(format(question), written, address);
			is(parse(format(question)), question, `${address} again`);
		}
	}],
	['other views', ({question: {parse}}, is) => {
		for (const address of ['', '#/', '#/conferences/12', '#/feed/conferences', '#/constructor']) is(parse(address), null, address);
	}],
	['an address never holds a key', ({question: {firstQuestion, format, parse}}, is) => {
		const key = 'mfk_dAauJTndd4ktqrW8xVsqk9CML16YA01vAdR15U';
		is(format({...firstQuestion('conferences'), words: ` lung "${key}" ${key.toUpperCase()}` }), '#/conferences?q=lung');
		is(parse(`#/conferences?q=${key}`).words, '');
	}],
	['choosing values', ({question: {firstQuestion, isNarrowed, toggle}}, is) => {
		const first = firstQuestion('conferences');
		is(isNarrowed(first), false);
		const one = toggle(first, 'region', 'Europe'), two = toggle(one, 'region', 'Asia');
		is(two.facets, {region: ['Europe', 'Asia']});
		is(isNarrowed(two), true);
		is(toggle(toggle(two, 'region', 'Europe'), 'region', 'Asia').facets, {});
		is(first.facets, {}, 'the question itself does not change');
	}],

	['an address keeps every mark of a value', ({question: {firstQuestion, format, parse}}, is) => {
		for (const value of ["Crohn's & Colitis", '100 % + 5', 'a=b?c#d', '?', 'a/b\\c', '"<x>"', 'Zürich 東京 🧬', 'a+b', '%41', ';:,', 'a\nb', "''", '&amp;', ' ']) {
			const question = {...firstQuestion('conferences'), facets: {area: [value, `${value}2`], tag: [`Topic: ${value}`]}};
			is(parse(format(question)), question, value);
			const words = {...firstQuestion('journals'), words: `x${value}x`};
			is(parse(format(words)), words, value);
		}
		is(format({...firstQuestion('conferences'), words: "Crohn's & 5%", facets: {area: ["It's+"]}}), '#/conferences?q=Crohn%27s+%26+5%25&area=It%27s%2B');
		// Addresses that people wrote by hand, without escapes.
		is(parse('#/conferences?q=why?&area=a?b').words, 'why?');
		is(parse('#/conferences?q=why?&area=a?b').facets, {area: ['a?b']});
	}],
	['a period has from 1 to 9999 days, and each value counts once', ({question: {format, firstQuestion, parse}}, is) => {
		for (const [text, expected] of [['1', 1], ['30', 30], ['9999', 9999], ['10000', null], ['0', null], ['030', null], ['3.5', null], ['30d', null], ['', null], ['-30', null], ['1e2', null]]) {
			is(parse(`#/conferences?within=${text}`).within, expected, text);
		}
		is(parse('#/conferences?area=A&area=B&area=A').facets, {area: ['A', 'B']});
		is(parse('#/conferences?order=asc').descending, false);
		is(parse('#/conferences?order=desc').descending, true);
		for (const sort of ['name', 'start', 'place']) is(parse(format({...firstQuestion('conferences'), sort, descending: true})).sort, sort);
		is(parse('#/journals?sort=deadline').sort, 'name', 'a column of the other dataset');
	}],
	['any part of a question narrows it', ({question: {firstQuestion, isNarrowed}}, is) => {
		const first = firstQuestion('conferences');
		for (const part of [{words: 'x'}, {facets: {area: ['A']}}, {kind: 'abstract'}, {within: 30}, {ids: []}, {ranges: {due_to: '2027-01-01'}}]) is(isNarrowed({...first, ...part}), true, JSON.stringify(part));
		for (const part of [{sort: 'name'}, {descending: true}, {mode: 'deadlines'}, {past: 'yes'}, {past: 'no'}, {unknown: true}, {ranges: {due_to: undefined}}]) is(isNarrowed({...first, ...part}), false, JSON.stringify(part));
	}],
	['a key in any case leaves the words', ({question: {firstQuestion, format}}, is) => {
		for (const [words, expected] of [['mfk_a b', '#/conferences?q=b'], ['MFK_A', '#/conferences'], ['a "Bearer mfk_x" c', '#/conferences?q=a+%22Bearer++c'], ['a mfk_dAauJTndd4ktqrW8 xVsqk9CML16YA01vAdR15U ESMO2027 Gastroenterology', '#/conferences?q=a+++ESMO2027+Gastroenterology'], ['xVsqk9CML16YA01vAdR15U', '#/conferences?q=xVsqk9CML16YA01vAdR15U'], ['xmfk_y', '#/conferences'], ['mfk', '#/conferences?q=mfk']]) {
			is(format({...firstQuestion('conferences'), words}), expected, words);
		}
		is(format({...firstQuestion('conferences'), facets: {country: ['mfk_x', 'Spain']}}), '#/conferences?country=Spain', 'a key as a filter');
	}],
	['each filter of an address has words, and goes alone', ({question: {filtersOf, format, parse}}, is) => {
		const address = '#/conferences?view=deadlines&q=lung&area=Oncology&region=Europe&region=&deadline=late_breaking&within=120&sort=name', filters = filtersOf(parse(address));
		is(filters.map(({text}) => text), ['“lung”', 'Oncology', 'Europe', 'Region: not announced', 'Late-breaking abstracts', 'due in the next 120 days']);
		const parts = ['q=lung&', 'area=Oncology&', 'region=Europe&', 'region=&', 'deadline=late_breaking&', 'within=120&'];
		is(filters.map(({without}) => format(without)), parts.map(part => address.replace(part, '')));
		is(filtersOf(parse('#/conferences?view=deadlines&sort=name&order=desc')), [], 'an order is no filter');
		const ranges = '#/journals?ids=5,6&impact_min=2.5&fee_max=2500&weeks_max=8&unknown=yes', each = ['ids=5,6&', 'impact_min=2.5&', 'fee_max=2500&', 'weeks_max=8&', '&unknown=yes'];
		is(filtersOf(parse(ranges)).map(({without}) => format(without)), each.map(part => ranges.replace(part, '')));
	}],
	['meetings that are over are left out, unless a question says otherwise', ({question: {filtersOf, format, parse, toggleComing}, select: {isComing, showsPast}}, is) => {
		for (const [address, coming, shows, toggled, chip] of [
			['#/conferences', true, false, '#/conferences?past=yes', 'to come'], ['#/conferences?past=yes', false, true, '#/conferences', 'with past ones'], ['#/conferences?past=no', true, false, '#/conferences?past=yes', 'to come'],
			['#/conferences?year=2026', false, true, '#/conferences?year=2026&past=no', undefined], ['#/conferences?year=2026&past=no', true, false, '#/conferences?year=2026', 'to come'],
			['#/conferences?start_date_to=2026-01-01', false, true, '#/conferences?start_date_to=2026-01-01&past=no', undefined], ['#/conferences?ids=1', false, false, '#/conferences?ids=1&past=no', undefined],
			['#/conferences?ids=1&past=no', true, false, '#/conferences?ids=1', 'to come'], ['#/conferences?area=A', true, false, '#/conferences?area=A&past=yes', 'to come'],
			['#/conferences?within=60', false, false, null, undefined], ['#/conferences?due_to=2027-01-01', false, false, null, undefined], ['#/conferences?view=deadlines', false, false, null, undefined],
			['#/conferences?deadline=abstract&past=no', false, false, null, undefined], ['#/journals', false, false, null, undefined],
		]) {
			const question = parse(address), last = filtersOf(question).findLast(({name}) => name === 'past');
			is([isComing(question), showsPast(question), last?.text], [coming, shows, chip], address);
			if (toggled) is(format(toggleComing(question)), toggled, `${address}, the other way`);
			if (last) is(format(last.without), toggled, `${address} without the chip`);
		}
	}],
	['filters of the API are filters of the copy', ({question: {parse, unknownOf}}, is) => {
		is(parse('#/conferences?therapy_area=Urology&country=Spain').facets, {area: ['Urology'], country: ['Spain']});
		is(parse('#/conferences?therapy_area=Urology&area=Oncology').facets, {area: ['Oncology']}, 'the own name first');
		is(parse('#/conferences?undefined=x').facets, {});
		for (const [address, names] of [
			['#/conferences?q=a&area=A&therapy_area=B&region=&view=deadlines&deadline=abstract&within=9&sort=name&order=desc', []], ['#/journals?q=a&fee=0&sort=name', []], ['#/conferences/5?x=1', []],
			['#/conferences?start_date_from=2027-01-01&updated_since=2026-01-01&limit=5&start_date_to=', ['updated_since']], ['#/conferences?within=soon&deadline=late', ['within=soon', 'deadline=late']],
			// An invalid value, and a second value where only one counts.
			['#/conferences?start_date_from=2027-02-30&start_date_to=10000-01-01&due_from=1.2.2027&due_to=tomorrow', ['start_date_from=2027-02-30', 'start_date_to=10000-01-01', 'due_from=1.2.2027', 'due_to=tomorrow']],
			['#/conferences?ids=12,x&past=maybe&unknown=no&sort=fee&order=up&view=map', ['ids=12,x', 'past=maybe', 'unknown=no', 'sort=fee', 'order=up', 'view=map']],
			['#/conferences?ids=&ids=5&due_to=2027-01-01&due_to=2027-01-02', ['due_to=2027-01-02']],
			['#/journals?impact_min=-1&fee_max=1e9&weeks_max=4,5&fee_max=1234567890123456', ['impact_min=-1', 'fee_max=1e9', 'weeks_max=4,5', 'fee_max=1234567890123456']], ['#/journals?impact_min=0&fee_max=2500&weeks_max=4.5', []],
			[`#/conferences?due_to=${'x'.repeat(99)}mfk_a&past=${'🧬'.repeat(99)}`, ['due_to=', `past=${'🧬'.repeat(40)}`]],
			['#/journals?within=30&region=Europe&year=2027', ['within', 'region', 'year']], ['#/conferences?mfk_x=1', []],
		]) is(unknownOf(address), names, address);
	}],
];
