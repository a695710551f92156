// Texts as search compares them: without case, typography, and marks of Latin and Greek letters. src/model/fold.rs is the server's version.

const LETTERS = {ß: 'ss', æ: 'ae', œ: 'oe', ς: 'σ', '\u0345': 'ι', '\u00ad': ''};
for (const [stroke, plain] of 'øo łl đd ðd ħh ŧt ıi ƀb ɨi ʉu ɵo ƶz ǥg ɇe ɉj ɍr ɏy ȼc ⱥa ⱦt ƚl ⱡl ᵽp ꝁk ꞡg ꞣk ꞥn ꞧr ꞩs'.split(' ')) LETTERS[stroke] = plain;
for (const apostrophe of '\u2018\u2019\u02bc`') LETTERS[apostrophe] = "'";
for (const dash of '\u2010\u2011\u2012\u2013\u2014\u2015\u2212') LETTERS[dash] = '-';
const PLAIN = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g');
// Marks of other letters than Latin and Greek ones make other letters, such as が and й.
const MARKS = /(^|[^\p{L}\p{N}\p{M}]|[\0-\u02ff\u0370-\u03ff\u1d00-\u1dbf\u1e00-\u1fff\u2100-\u2c7f\ua720-\ua7ff])[\u0300-\u0344\u0346-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]+/gu;
// The points of Hebrew and Arabic, without hamza and madda.
const POINTS = /[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]/g;

/** A text in lower case, without marks. */
export function fold(text) {
	if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase().replaceAll('`', "'");
	// The compatibility decomposition of U+00B4 is a blank with an accent.
	return text.normalize('NFD').replaceAll('\u00b4', "'").normalize('NFKD').toLowerCase().replace(MARKS, '$1').replace(POINTS, '')
		.replace(PLAIN, letter => LETTERS[letter]).normalize('NFC');
}

/** The folded words of a text. An apostrophe joins: `Crohn's` is `crohns`. */
export const wordsOf = text => fold(text).replaceAll("'", '').split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean);

/** The folded letters of a text, without blanks and punctuation, for comparing names. */
export const lettersOf = text => fold(text).replace(/[^\p{L}\p{N}\p{M}]/gu, '');

const SPELLED = {ä: 'ae', ö: 'oe', ü: 'ue', å: 'aa', ø: 'oe'};

/** A folded word in American spelling, `hematology` of `haematology`; '' if it has no British one. */
export const americanOf = word => /ae|oe|tumour/.test(word) ? word.replace(/ae|oe/g, 'e').replace('tumour', 'tumor') : '';

/**
 * More spellings of a text's words: those with German or Nordic letters as people write them without, `muenchen` of `München`, and the
 * American ones.
 */
export function spelledOut(text) {
	const plain = /[^\x00-\x7f]/.test(text) ? text.toLowerCase().normalize('NFC') : '';
	const german = /[äöüåø]/.test(plain) ? wordsOf(plain.replace(/[äöüåø]/g, letter => SPELLED[letter])) : [];
	return /[ao]e|æ|œ|tumour/i.test(text) ? [...german, ...wordsOf(text).map(americanOf).filter(Boolean)] : german;
}
