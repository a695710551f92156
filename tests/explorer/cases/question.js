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
		// As people write them by hand.
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
		for (const part of [{words: 'x'}, {facets: {area: ['A']}}, {kind: 'abstract'}, {within: 30}]) is(isNarrowed({...first, ...part}), true, JSON.stringify(part));
		for (const part of [{sort: 'name'}, {descending: true}, {mode: 'deadlines'}]) is(isNarrowed({...first, ...part}), false, JSON.stringify(part));
	}],
	['a key in any case leaves the words', ({question: {firstQuestion, format}}, is) => {
		for (const [words, expected] of [['mfk_a b', '#/conferences?q=b'], ['MFK_A', '#/conferences'], ['a "Bearer mfk_x" c', '#/conferences?q=a+%22Bearer++c'], ['xmfk_y', '#/conferences'], ['mfk', '#/conferences?q=mfk']]) {
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
	}],
];
