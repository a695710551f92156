// What a reader types into the search: words, months, years of two digits, words to leave out, and how well a name fits them.
import {STATUS} from './deadlines.js';
import {wordsOf} from './fold.js';

const MONTHS = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december'];
/** Words that mean the same, and abbreviations that are not the beginning of their word. */
const SAME = {virtual: 'online', online: 'virtual', natl: 'national', intl: 'international', assn: 'association', jpn: 'japanese', haematol: 'hematology', hematol: 'haematology', paediatr: 'pediatrics', pediatr: 'paediatrics',
	oncol: 'oncology', dtsch: 'deutsches', govt: 'government', qtly: 'quarterly'};
/** Words that abbreviations of names leave out. */
export const SMALL = new Set(['of', 'the', 'and', 'for', 'in', 'on', 'a']);

const two = number => String(number).padStart(2, '0');
/** The number of a month by its name or the first three letters or more of it; 0 if it is none. */
const monthOf = word => word.length > 2 ? MONTHS.findIndex(month => month.startsWith(word)) + 1 : 0;

/** Whether a word is the name of a month, or begins it with three letters or more. */
export const isMonth = word => monthOf(wordsOf(word)[0] ?? '') > 0;

/** The months of a record's dates as words of the index, with and without the year: `m03 m202703`. No reader types them. */
export const monthsOf = record => [record.start_date, record.abstract_due_date, record.late_breaking_due_date].filter(Boolean).map(day => `m${day.slice(5, 7)} m${day.slice(0, 4)}${day.slice(5, 7)}`);

/** How sure a record's deadlines are, in words. */
export const statusesOf = record => [record.abstract_due_date_status, record.late_breaking_due_date_status].filter(Boolean).map(status => STATUS[status]?.[0] ?? status);

/** A month with its year, `march 2027` or `03/2027`, as a word of the index. */
function joinMonths(text) {
	const named = text.replace(/(^|\s)([\p{L}]{3,9})\.?\s+((?:19|20)\d\d)(?=\s|$)/gu, (whole, before, name, year) => {
		const month = monthOf(wordsOf(name)[0] ?? '');
		return month ? `${before}m${year}${two(month)}` : whole;
	});
	return named.replace(/(^|\s)(0?[1-9]|1[0-2])[/.]((?:19|20)\d\d)(?=\s|$)/g, (_, before, month, year) => `${before}m${year}${two(month)}`);
}

/** A word of the index that means the same as a typed one: a month, a year, or another word. */
function alsoOf(word) {
	const month = MONTHS.indexOf(word) + 1;
	if (month) return `m${two(month)}`;
	return /^\d\d$/.test(word) ? `20${word}` : Object.hasOwn(SAME, word) ? SAME[word] : null;
}

/** The terms of a text: [{typed, word, also, isOut}]. A `-` before a word leaves out the records that have it. */
export const termsOf = text => joinMonths(text).split(/\s+/).flatMap(typed => {
	const isOut = /^-[\p{L}\p{N}]/u.test(typed);
	return wordsOf(typed).map(word => ({typed: typed.replace(/^-/, '').replace(/^m(\d{4})(\d\d)$/, '$2/$1'), word, also: alsoOf(word), isOut}));
});

/** What a text asks of names: {texts, words}, all words but the year, and of those the words that names have in full; null for a text without words. */
export function wantedOf(text) {
	const texts = termsOf(text).filter(({isOut, word}) => !isOut && !/^(m\d{6}|(20)?\d\d)$/.test(word)), words = texts.filter(({word}) => !SMALL.has(word));
	return words.length ? {texts: texts.map(({word}) => word), words} : null;
}
