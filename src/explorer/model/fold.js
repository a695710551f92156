// Texts as search compares them: without case, marks and typography. src/model/fold.rs is the server's version.

const LETTERS = {ß: 'ss', ø: 'o', ł: 'l', đ: 'd', ð: 'd', ħ: 'h', ŧ: 't', ı: 'i', æ: 'ae', œ: 'oe', ƀ: 'b', ɨ: 'i', ʉ: 'u', ς: 'σ', '\u0345': 'ι', '\u00ad': ''};
for (const apostrophe of '\u2018\u2019\u02bc`') LETTERS[apostrophe] = "'";
for (const dash of '\u2010\u2011\u2012\u2013\u2014\u2015\u2212') LETTERS[dash] = '-';
const UNMARKED = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g');
// Accents and points. Vowel signs, such as those of Devanagari, are letters and stay.
const MARKS = /[\u0300-\u0344\u0346-\u036f\u0591-\u05c7\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]/g;

/** A text in lower case, without marks. */
export function fold(text) {
	if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase().replaceAll('`', "'");
	// The compatibility decomposition of U+00B4 is a blank with an accent.
	return text.normalize('NFD').replaceAll('\u00b4', "'").normalize('NFKD').toLowerCase().replace(MARKS, '').replace(UNMARKED, letter => LETTERS[letter]).normalize('NFC');
}

/** The folded words of a text. An apostrophe joins: `Crohn's` is `crohns`. */
export const wordsOf = text => fold(text).replaceAll("'", '').split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean);

/** The folded letters of a text, without blanks and punctuation, for comparing names. */
export const lettersOf = text => fold(text).replace(/[^\p{L}\p{N}]/gu, '');

const SPELLED = {ä: 'ae', ö: 'oe', ü: 'ue', å: 'aa', ø: 'oe'};

/** The words of a text that has German or Nordic letters, as people write them without: `muenchen` of `München`. Else none. */
export function spelledOut(text) {
	const plain = /[^\x00-\x7f]/.test(text) ? text.toLowerCase().normalize('NFC') : '';
	return /[äöüåø]/.test(plain) ? wordsOf(plain.replace(/[äöüåø]/g, letter => SPELLED[letter])) : [];
}
