// Texts as search compares them: without case and marks. src/model/fold.rs is the server's version.

const LETTERS = {ß: 'ss', ø: 'o', ł: 'l', đ: 'd', ð: 'd', ħ: 'h', ŧ: 't', ı: 'i', æ: 'ae', œ: 'oe', ƀ: 'b', ɨ: 'i', ʉ: 'u', ς: 'σ'};
const UNMARKED = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g');
// Accents and points. Vowel signs, such as those of Devanagari, are letters and stay.
const MARKS = /[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]/g;

/** A text in lower case, without marks. */
export function fold(text) {
	if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase();
	return text.normalize('NFKD').toLowerCase().replace(MARKS, '').replace(UNMARKED, letter => LETTERS[letter]).normalize('NFC');
}

/** The folded words of a text. An apostrophe joins: `Crohn's` is `crohns`. */
export const wordsOf = text => fold(text).replace(/['’ʼ]/g, '').split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean);

/** The folded letters of a text, without blanks and punctuation, for comparing names. */
export const lettersOf = text => fold(text).replace(/[^\p{L}\p{N}]/gu, '');
