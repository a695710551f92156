// What a reader types into the search: words, months, years of two digits, words to leave out, and how well a name fits them.
import {STATUS, addDays, daysBetween, isDay, lastDayOf} from './deadlines.js';
import {americanOf, wordsOf} from './fold.js';

const MONTHS = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december'];
/** Words that mean the same, and abbreviations that are not the beginning of their word. */
const SAME = {virtual: 'online', online: 'virtual', lba: 'breaking', breaker: 'breaking', breakers: 'breaking', natl: 'national', intl: 'international', assn: 'association', jpn: 'japanese',
	dtsch: 'deutsches', govt: 'government', qtly: 'quarterly'};
/** Words that abbreviations of names leave out. */
export const SMALL = new Set(['of', 'the', 'and', 'for', 'in', 'on', 'a']);

/** The most days of a meeting that are words of the index. */
const MAX_DAYS = 30;
const INITIALS = /^[a-z]{3,6}$/;

const two = number => String(number).padStart(2, '0');
/** The number of a month by its name or the first three letters or more of it; 0 if it is none. */
export const monthOf = word => word.length > 2 ? MONTHS.findIndex(month => month.startsWith(word)) + 1 : 0;

/** A day with its months as words of the index: `m03 m202703 d20270305`. No reader types them. */
const wordsOfDay = day => `m${day.slice(5, 7)} m${day.slice(0, 4)}${day.slice(5, 7)} d${day.replaceAll('-', '')}`;

/** The first day of a meeting with its months, and its other days, as words of the index. */
const wordsOfMeeting = (first, last) => [wordsOfDay(first), ...Array.from({length: Math.min(daysBetween(first, last), MAX_DAYS)}, (_, at) => `d${addDays(first, at + 1).replaceAll('-', '')}`)].join(' ');

// Many meetings have the same days.
const meetings = new Map();

/** The days and months of a record's deadlines and of its meeting, as texts of words of the index. */
export function datesOf(record) {
	const {start_date: first, abstract_due_date, late_breaking_due_date} = record, span = first && first + lastDayOf(record);
	if (span && !meetings.has(span)) meetings.set(span, wordsOfMeeting(first, lastDayOf(record)));
	return [...[abstract_due_date, late_breaking_due_date].filter(Boolean).map(wordsOfDay), ...span ? [meetings.get(span)] : []];
}

/** The first letters of a journal's name as a word of the index. `NEJM` finds the New England Journal of Medicine. */
export function initialsOf(name) {
	const letters = wordsOf(name).filter(word => !SMALL.has(word)).map(([first]) => first).join('');
	return INITIALS.test(letters) ? `0${letters}` : '';
}

/** How sure a record's deadlines are, in words. */
export const statusesOf = record => [record.abstract_due_date_status, record.late_breaking_due_date_status].filter(Boolean).map(status => STATUS[status]?.[0] ?? status);

/** A day that a text names as a word of the index; the text if the calendar has no such day. */
const dayOr = (text, year, month, day) => isDay(`${year}-${two(month)}-${two(day)}`) ? `d${year}${two(month)}${two(day)}` : text;

/** Dates as people write them, outside other words: [pattern, the word of the index for its match]. Months by name are `monthOf`'s. */
const DATES = [
	['(\\d{4})-(\\d\\d)-(\\d\\d)', dayOr],
	['(\\d\\d?)\\.(\\d\\d?)\\.(\\d{4})', (text, day, month, year) => dayOr(text, year, month, day)],
	['(\\d\\d?)\\.? (\\p{L}{3,9})\\.?,? (\\d{4})', (text, day, name, year) => dayOr(text, year, monthOf(name.toLowerCase()), day)],
	['(\\p{L}{3,9})\\.? (\\d\\d?),? (\\d{4})', (text, name, day, year) => dayOr(text, year, monthOf(name.toLowerCase()), day)],
	['(\\p{L}{3,9})\\.?\\s+((?:19|20)\\d\\d)', (text, name, year) => monthOf(name.toLowerCase()) ? `m${year}${two(monthOf(name.toLowerCase()))}` : text],
	['(0?[1-9]|1[0-2])[/.]((?:19|20)\\d\\d)', (_, month, year) => `m${year}${two(month)}`],
	['((?:19|20)\\d\\d)[-/](0[1-9]|1[0-2])', (_, year, month) => `m${year}${month}`],
].map(([pattern, wordOf]) => [new RegExp(`(?<=^|\\s)${pattern}(?=\\s|$)`, 'gu'), wordOf]);

/** A text whose days and months with a year, `15 march 2027` and `03/2027`, are words of the index. */
const joinDates = text => DATES.reduce((joined, [pattern, wordOf]) => joined.replace(pattern, wordOf), text);

/** A word of the index that means the same as a typed one: a month, a year, or another word. */
function alsoOf(word) {
	const month = monthOf(word);
	if (month) return `m${two(month)}`;
	if (/^\d\d$/.test(word)) return `20${word}`;
	return Object.hasOwn(SAME, word) ? SAME[word] : INITIALS.test(word) ? `0${word}` : null;
}

/** A word that a reader typed, which was made a word of the index. */
const typedOf = text => text.replace(/^-/, '').replace(/^m(\d{4})(\d\d)$/, '$2/$1').replace(/^d(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3');

/** The terms of a text: [{typed, word, isOut, isLike(word of the index)}]. A `-` before a word leaves out the records that have it. */
export const termsOf = text => joinDates(text).split(/\s+/).flatMap(given => {
	const isOut = /^-[\p{L}\p{N}]/u.test(given);
	return wordsOf(given).map(word => {
		const also = alsoOf(word), american = americanOf(word);
		return {typed: typedOf(given), word, isOut, isLike: known => known.startsWith(word) || known === also || Boolean(american) && known.startsWith(american)};
	});
});

/** A text without the words that a reader typed so. */
export const withoutTyped = (text, unwanted) => [...new Set(termsOf(text).filter(({typed}) => !unwanted.includes(typed)).map(({typed, isOut}) => (isOut ? '-' : '') + typed))].join(' ');

/** What a text asks of names: {texts, words}, all words but the year, and of those the words that names have in full; null for a text without words. */
export function wantedOf(text) {
	const texts = termsOf(text).filter(({isOut, word}) => !isOut && !/^(m\d{6}|d\d{8}|(20)?\d\d)$/.test(word)), words = texts.filter(({word}) => !SMALL.has(word));
	return words.length ? {texts: texts.map(({word}) => word), words} : null;
}
