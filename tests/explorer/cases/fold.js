export const cases = [
	['case and marks do not count', ({fold: {fold}}, is) => {
		for (const [one, other] of [
			['ASCO', 'asco'], ['Sjögren', 'SJOGREN'], ['Société Française', 'societe francaise'], ['Straße', 'STRASSE'], ['İstanbul', 'istanbul'],
			['Łódź', 'lodz'], ['København', 'kobenhavn'], ['ΚΑΡΔΙΟΛΟΓΊΑΣ', 'καρδιολογιας'], ['Ёлка', 'елка'], ['e\u0301tude', 'ÉTUDE'],
			['ﬁbrosis', 'FIBROSIS'], ['Đà Nẵng', 'da nang'], ['日本癌学会', '日本癌学会'], ['ＡＳＣＯ', 'asco'], ['ｶﾝﾌｧﾚﾝｽ', 'カンファレンス'],
		]) is(fold(one), fold(other), `${one} and ${other}`);
	}],
	['letters count', ({fold: {fold}}, is) => {
		for (const [one, other] of [['각', '가'], ['हिन्दी', 'हन्दी'], ['癌', 'がん'], ['n', 'm']]) is(fold(one) === fold(other), false, `${one} and ${other}`);
	}],
	['words', ({fold: {wordsOf}}, is) => {
		for (const [text, words] of [
			['', []], [' , ', []], ['ESMO 2027', ['esmo', '2027']], ["Crohn's & Colitis", ['crohns', 'colitis']], ['COVID-19', ['covid', '19']],
			['Rio de Janeiro/São Paulo', ['rio', 'de', 'janeiro', 'sao', 'paulo']], ['हिन्दी', ['हिन्दी']],
		]) is(wordsOf(text), words, text);
	}],
	['each kind of apostrophe joins', ({fold: {wordsOf}}, is) => {
		for (const mark of ["'", '’', 'ʼ']) is(wordsOf(`Crohn${mark}s l${mark}Hôpital`), ['crohns', 'lhopital'], mark);
	}],
];
