export const cases = [
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
