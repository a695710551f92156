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
];
