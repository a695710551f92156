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
			['#conferences/?within=-1&sort=constructor&view=x&order=up&deadline=toString&nothing=1&area=', {}, '#/conferences'],
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
];
