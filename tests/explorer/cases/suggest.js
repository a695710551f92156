export const cases = [
	['did you mean', ({facets: {setRegions}, suggest: {nearest}}, is) => {
		setRegions({Americas: 'United States,us,usa', Europe: 'Germany,deutschland'});
		const values = ['Cardiology', 'Gastroenterology', 'Germany', 'Niger', 'Nigeria', 'Oncology', 'Pediatric Oncology', 'Spain', 'São Paulo', 'United States'];
		for (const [text, expected] of [
			['germany', 'Germany'], ['Germany', null], ['GERMANY ', 'Germany'], ['Germnay', 'Germany'], ['Deutschland', 'Germany'], ['usa', 'United States'], ['US', 'United States'],
			['onclogy', 'Oncology'], ['oncol', 'Oncology'], ['cardio', 'Cardiology'], ['sao paulo', 'São Paulo'], ['Nigerja', 'Nigeria'], ['Niger', null], ['xyz', null], ['', null], ['?', null],
			['gastroentrology', 'Gastroenterology'], ['Atlantis', null], ['x'.repeat(100000), null],
		]) is(nearest(text, values), expected, text.slice(0, 20));
	}],
	['the shortest longer value is meant, and two letters mean none', ({facets: {setRegions}, suggest: {nearest}}, is) => {
		setRegions({});
		for (const [text, expected] of [['nige', 'Niger'], ['Nigeri', 'Nigeria'], ['onc', 'Oncology'], ['ni', null], ['o', null], ['s', null]]) is(nearest(text, ['Nigeria', 'Niger', 'Pediatric Oncology', 'Oncology', 'Spain']), expected, text);
	}],
	['letters that changed places are one slip', ({facets: {setRegions}, suggest: {nearest}}, is) => {
		setRegions({});
		for (const [text, expected] of [['Spian', 'Spain'], ['asoc', 'ASCO'], ['oncoolgy', 'Oncology'], ['Sapni', null]]) is(nearest(text, ['Spain', 'ASCO', 'Oncology']), expected, text);
	}],
	['words that no record has are spelled as records do', ({search: {Index}, suggest: {meantBy}}, is) => {
		const names = ['ASCO Annual Meeting', 'ESOC', 'Assoc of Surgeons', 'Gastroenterology Week', "Crohn's Days", 'Sjögren Symposium', 'Radiology', 'Cardiology 2027', 'Zürich Days'];
		const index = new Index('conferences');
		index.add(names.map((name, at) => ({id: at + 1, name, abbv: null, year: null, therapy_areas: [], organizations: [{id: 1, name: 'Alliance', abbv: 'EULAR'}], tags: []})));
		for (const [text, expected] of [
			// The same letters first, then the same first letter.
			['ASOC', ['ASCO', 'Assoc', 'ESOC']], ['asoc annual', ['ASCO annual', 'Assoc annual', 'ESOC annual']], ['cardioolgy', ['Cardiology', 'Radiology']], ['  gastroentrology   wek ', ['  Gastroenterology   Week ']],
			['eualr', ['EULAR']], ['munich', []], ['chrons', ["Crohn's"]], ['sjogern', ['Sjögren']],
			// A word that begins another one, a number, two letters and nonsense.
			['card', []], ['2028', []], ['xy', []], ['xyzzyx', []], ['', []], ['?', []],
		]) is(meantBy(index, text), expected, text);
		index.apply([{id: 1, after: null}]);
		is(meantBy(index, 'ASOC')[0], 'Assoc', 'a record that has gone suggests nothing');
	}],
];
