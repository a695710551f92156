// An index of a copy: the words and facet values of each record as small numbers, so that each question is one pass.
import {deadlinesOf, untilOf} from './deadlines.js';
import {namesOfCity} from './cities.js';
import {spelledOut, wordsOf} from './fold.js';
import {FACETS, FORMATS, NONE, namesOf, regionOf} from './facets.js';
import {SMALL, datesOf, initialsOf, statusesOf, termsOf} from './words.js';
import {COLUMNS, Order} from './order.js';

/** The texts in which words are found, and the links in whose names. */
const TEXTS = {
	conferences: record => [record.name, record.abbv, record.year, record.country, regionOf(record.country), ...namesOf(record.country),
		record.city, ...namesOfCity(record.city), record.venue, ...datesOf(record), ...statusesOf(record), record.late_breaking_due_date && 'late-breaking',
		...Object.keys(FORMATS).filter(format => record.formats?.[format]).map(format => FORMATS[format]), ...record.therapy_areas ?? [], ...record.organizations ?? [], ...record.tags ?? []],
	journals: record => [record.name, initialsOf(record.name ?? ''), record.abbv, record.publisher, record.publishing?.access, record.publishing?.content_license, record.issn_print, record.issn_online, record.issn_print?.replace('-', ''), record.issn_online?.replace('-', ''),
		...record.organizations ?? [], ...record.tags ?? []],
};

/** A text, or the names of a link. */
const plainOf = text => text.name ? `${text.name} ${text.abbv ?? ''}` : String(text);

// Scripts without blanks between words: there a word is found anywhere in another.
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}]/u;
const MAX_WORDS = 30;
const MAX_CACHED = 100000;
/** The slots without a record that are kept before the index is built again. */
const MAX_UNUSED = 5000;

const larger = (array, length) => {
	if (length <= array.length) return array;
	const copy = new Uint32Array(Math.max(length, 2 * array.length));
	copy.set(array);
	return copy;
};

/** Lists of small numbers in one array, which is fast to read: list `slot` is `data[ends[slot - 1]..ends[slot]]`. */
class Lists {
	constructor() {
		[this.data, this.ends, this.count] = [new Uint32Array(1024), new Uint32Array(256), 0];
	}

	push(list) {
		const begin = this.count && this.ends[this.count - 1], end = begin + list.length;
		this.data = larger(this.data, end);
		this.ends = larger(this.ends, this.count + 1);
		this.data.set(list, begin);
		this.ends[this.count++] = end;
	}
}

/** Words and facet values of the records of one dataset. Each record has a slot; a changed record gets a new one. */
export class Index {
	constructor(dataset) {
		this.dataset = dataset;
		this.clear();
	}

	/** Forgets all records. */
	clear() {
		[this.records, this.due, this.lastDays] = [[], [], []];
		this.slots = new Map();
		[this.words, this.values, this.shorts, this.wholes] = [new Lists(), new Lists(), new Lists(), new Lists()];
		this.vocabulary = [];
		this.numbers = new Map();
		this.texts = new Map();
		// Each value has a number that no other facet uses.
		this.facets = FACETS[this.dataset].map(facet => ({...facet, numbers: new Map()}));
		this.facetOf = [];
		this.orders = new Map();
		[this.marks, this.turn] = [[], 0];
	}

	get size() {
		return this.slots.size;
	}

	/** Adds records that are not in the index. */
	add(records) {
		for (const record of records) {
			const slot = this.records.push(record) - 1;
			this.due.push(null);
			this.lastDays.push(null);
			this.slots.set(record.id, slot);
			this.words.push(this.wordsOf(record));
			this.shorts.push(this.numbersOfName(record.abbv ?? ''));
			this.wholes.push(this.numbersOfName(record.name ?? ''));
			const values = [];
			this.facets.forEach((facet, at) => {
				const own = facet.valuesOf(record);
				for (const value of own.length ? own : [NONE]) values.push(this.numberOf(facet, at, value));
			});
			this.values.push(values);
			for (const order of this.orders.values()) order.change(slot);
		}
	}

	/** Applies the changes of a copy. */
	apply(changes) {
		for (const {id, after} of changes) {
			if (this.slots.has(id)) {
				this.records[this.slots.get(id)] = this.due[this.slots.get(id)] = null;
				this.slots.delete(id);
				for (const order of this.orders.values()) order.change();
			}
			if (after) this.add([after]);
		}
		if (this.records.length < 2 * this.size + MAX_UNUSED) return;
		const records = this.records.filter(Boolean);
		this.clear();
		this.add(records);
	}

	/** The slots in the order of a column. */
	order(column, descending, today) {
		let order = this.orders.get(column);
		if (order?.today !== today) {
			order = new Order(COLUMNS[this.dataset][column], today, this.records);
			this.orders.set(column, order);
		}
		return order.list(descending);
	}

	/** A test for slots whose record holds all words of a text, each as the beginning of a word, and none of those after a `-`. Null for a text without words. */
	matcher(text) {
		// The last word may still be the beginning of another one.
		const terms = termsOf(text ?? '').slice(0, MAX_WORDS).filter(({word}, at, all) => at === all.length - 1 || !SMALL.has(word));
		if (!terms.length) return null;
		const found = new Uint32Array(this.vocabulary.length), wanted = terms.reduce((bits, {isOut}, at) => isOut ? bits : bits | 1 << at, 0), all = terms.some(({isOut}) => isOut) ? -1 : wanted;
		terms.forEach(({word, isLike}, at) => {
			const isIn = UNSPACED.test(word) ? known => known.includes(word) : isLike;
			this.vocabulary.forEach((known, number) => {
				if (isIn(known)) found[number] |= 1 << at;
			});
		});
		const {data, ends} = this.words;
		return slot => {
			let bits = 0;
			for (let at = slot && ends[slot - 1]; at < ends[slot] && bits !== all; at++) bits |= found[data[at]];
			return bits === wanted;
		};
	}

	/** The words of a text that no record has. */
	unknownWords(text) {
		const isKnown = word => {
			const isMatch = this.matcher(word);
			return !isMatch || this.records.some((record, slot) => record && isMatch(slot));
		};
		return termsOf(text).filter(({word, isOut}) => !isOut && !isKnown(word)).map(({typed}) => typed);
	}

	/** The numbers of a name's words in their order, without those that spell it out. */
	numbersOfName(name) {
		const all = this.numbersOfText(name), spelled = spelledOut(name).length;
		return spelled ? all.slice(0, -spelled) : all;
	}

	/**
	 * How well the names of some slots fit a text, by slot: 0 for the short or whole name, 1 if each word begins a word of the name in
	 * order, 2 for names that begin so, 3 for others.
	 */
	fitting(slots, {texts, words}) {
		const last = texts.length - 1, exact = texts.map(text => this.numbers.get(text));
		// Each word is compared when it is met first, and once.
		const testOf = isLike => {
			const seen = new Uint8Array(this.vocabulary.length);
			return number => (seen[number] ||= isLike(this.vocabulary[number]) ? 2 : 1) === 2;
		};
		const begins = testOf(known => known.startsWith(texts[last])), likes = words.map(({isLike}) => testOf(isLike));
		const small = new Set([...SMALL].map(word => this.numbers.get(word))), fits = new Uint8Array(this.records.length).fill(3);
		for (const {data, ends} of [this.shorts, this.wholes]) for (const slot of slots) {
			const from = slot && ends[slot - 1], size = ends[slot] - from, isBegun = size > last && begins(data[from + last]) && exact.every((number, at) => at === last || data[from + at] === number);
			let met = 0;
			for (let at = from; at < ends[slot] && met >= 0; at++) if (!small.has(data[at])) met = likes[met]?.(data[at]) ? met + 1 : -1;
			const fit = isBegun && size === texts.length && data[from + last] === exact[last] ? 0 : met === words.length && data === this.wholes.data ? 1 : isBegun ? 2 : 3;
			if (fit < fits[slot]) fits[slot] = fit;
		}
		return fits;
	}

	/** A word of the index as a record spells it; null if no record has it. */
	spellingOf(word) {
		const number = this.numbers.get(word), {data, ends} = this.words;
		for (let slot = 0; slot < this.records.length; slot++) {
			if (!this.records[slot] || !data.subarray(slot && ends[slot - 1], ends[slot]).includes(number)) continue;
			for (const text of TEXTS[this.dataset](this.records[slot])) for (const spelled of text == null ? [] : plainOf(text).split(/[^\p{L}\p{N}\p{M}'’]+/u)) {
				if (wordsOf(spelled).includes(word)) return spelled;
			}
		}
		return null;
	}

	/** All deadlines of a slot's record. */
	deadlines(slot) {
		return this.due[slot] ??= deadlinesOf(this.records[slot]);
	}

	/** The last day on which something of a slot's record is ahead. A slot never gets another record. */
	until(slot) {
		return this.lastDays[slot] ??= untilOf(this.records[slot]);
	}

	/** The number of a value of a facet. */
	numberOf(facet, at, value) {
		let number = facet.numbers.get(value);
		if (number === undefined) facet.numbers.set(value, number = this.facetOf.push(at) - 1);
		return number;
	}

	/** The numbers of a record's words, each once. */
	wordsOf(record) {
		const turn = ++this.turn, found = [];
		for (const text of TEXTS[this.dataset](record)) if (text != null) for (const number of this.numbersOfText(text)) {
			if (this.marks[number] === turn) continue;
			this.marks[number] = turn;
			found.push(number);
		}
		return found;
	}

	/** The numbers of the words of a text or link. Most are in many records. */
	numbersOfText(text) {
		let found = this.texts.get(text);
		if (found) return found;
		const plain = plainOf(text);
		found = [...wordsOf(plain), ...spelledOut(plain)].map(word => {
			if (!this.numbers.has(word)) this.numbers.set(word, this.vocabulary.push(word) - 1);
			return this.numbers.get(word);
		});
		if (this.texts.size > MAX_CACHED) this.texts.clear();
		this.texts.set(text, found);
		return found;
	}
}
