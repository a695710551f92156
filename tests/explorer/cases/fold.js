export const cases = [
	['case and marks do not count', ({fold: {fold}}, is) => {
		for (const [one, other] of [
			['ASCO', 'asco'], ['Sjögren', 'SJOGREN'], ['Société Française', 'societe francaise'], ['Straße', 'STRASSE'], ['İstanbul', 'istanbul'],
			['Łódź', 'lodz'], ['København', 'kobenhavn'], ['ΚΑΡΔΙΟΛΟΓΊΑΣ', 'καρδιολογιας'], ['и\u0306од', 'ЙОД'], ['か\u3099', 'が'], ['ﾊﾟｽ', 'パス'], ['שָׁלוֹם', 'שלום'], ['مُحَمَّد', 'محمد'], ['ƵǤɆȻⱥ', 'zgeca'], ['e\u0301tude', 'ÉTUDE'],
			['ﬁbrosis', 'FIBROSIS'], ['Đà Nẵng', 'da nang'], ['日本癌学会', '日本癌学会'], ['ＡＳＣＯ', 'asco'], ['ｶﾝﾌｧﾚﾝｽ', 'カンファレンス'],
		]) is(fold(one), fold(other), `${one} and ${other}`);
	}],
	['typography does not count', ({fold: {fold}}, is) => {
		for (const [text, expected] of [
			['Alzheimer’s', "alzheimer's"], ['‘a’ ʼb `c ´d \uff07e \uff40f \u1ffdg \u1fefh ŉ', "'a' 'b 'c 'd 'e 'f 'g 'h 'n"], ['O`Hara', "o'hara"], ['non\u2010hodgkin COVID\u201119', 'non-hodgkin covid-19'],
			['\u2012\u2013\u2014\u2015\u2212\uff0d\ufe58\ufe63\ufe31', '---------'], ['onco\u00adlo\u00adgy', 'oncology'], ['\u00ad', ''], ['“a” \u2016', '“a” \u2016'],
		]) is(fold(text), expected, text);
	}],
	['letters count', ({fold: {fold}}, is) => {
		for (const [one, other] of [['각', '가'], ['हिन्दी', 'हन्दी'], ['癌', 'がん'], ['n', 'm'], ['か', 'が'], ['ﾊﾞｽ', 'ハス'], ['ё', 'е'], ['أ', 'ا'], ['क\u094d', 'क']]) is(fold(one) === fold(other), false, `${one} and ${other}`);
	}],
	['words', ({fold: {wordsOf}}, is) => {
		for (const [text, words] of [
			['', []], [' , ', []], ['ESMO 2027', ['esmo', '2027']], ["Crohn's & Colitis", ['crohns', 'colitis']], ['l’Hôpital', ['lhopital']], ['COVID-19', ['covid', '19']],
			['Rio de Janeiro/São Paulo', ['rio', 'de', 'janeiro', 'sao', 'paulo']], ['हिन्दी', ['हिन्दी']],
		]) is(wordsOf(text), words, text);
	}],
	['German and Nordic letters, as they are spelled without', ({fold: {spelledOut}}, is) => {
		for (const [text, words] of [
			['München', ['muenchen']], ['KÖLN', ['koeln']], ['Mu\u0308nchen', ['muenchen']], ['Universität Tübingen', ['universitaet', 'tuebingen']], ['Århus, Tromsø', ['aarhus', 'tromsoe']],
			['Munich', []], ['São Paulo', []], ['Straße', []], ['', []],
		]) is(spelledOut(text), words, text);
	}],
];
