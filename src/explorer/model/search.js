// An index of a copy: the words and facet values of each record as small numbers, so that each question is one pass.
import {wordsOf} from './fold.js';
import {FACETS, namesOf, regionOf} from './facets.js';
import {COLUMNS, Order} from './order.js';

const links = list => (list ?? []).flatMap(link => [link.name, link.abbv]);

/** The texts in which words are found. */
const TEXTS = {
	conferences: record => [record.name, record.abbv, record.year, record.country, ...record.country ? [regionOf(record.country), ...namesOf(record.country)] : [],
		record.city, record.venue, ...record.therapy_areas ?? [], ...links(record.organizations), ...links(record.tags)],
	journals: record => [record.name, record.abbv, record.publisher, record.publishing?.access, record.issn_print, record.issn_online,
		...links(record.organizations), ...links(record.tags)],
};

// Scripts without blanks between words: there a word is found anywhere in another.
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}]/u;
const MAX_WORDS = 30;
const MAX_CACHED = 100000;

/** Words and facet values of the records of one dataset. */
export class Index {
	constructor(dataset) {
		this.dataset = dataset;
		this.clear();
	}

	/** Forgets all records. */
	clear() {
		this.entries = new Map();
		this.vocabulary = [];
		this.numbers = new Map();
		this.texts = new Map();
		this.facets = FACETS[this.dataset].map(facet => ({...facet, values: [], numbers: new Map(), lists: new Map()}));
		this.orders = new Map();
		this.marks = [];
		this.turn = 0;
	}

	get size() {
		return this.entries.size;
	}

	/** Adds records that are not in the index. */
	add(records) {
		for (const record of records) {
			const entry = {record, words: this.wordsOf(record), facets: this.facets.map(facet => numbersOf(facet, facet.valuesOf(record))), isGone: false};
			this.entries.set(record.id, entry);
			for (const order of this.orders.values()) order.add(entry);
		}
	}

	/** Applies the changes of a copy. */
	apply(changes) {
		for (const {id, after} of changes) {
			const old = this.entries.get(id);
			if (old) {
				old.isGone = true;
				this.entries.delete(id);
				for (const order of this.orders.values()) order.remove(old);
			}
			if (after) this.add([after]);
		}
	}

	/** The entries {record, words, facets} in the order of a column. */
	order(column, descending, today) {
		let order = this.orders.get(column);
		if (order?.today !== today) {
			order = new Order(COLUMNS[this.dataset][column], today, this.entries.values());
			this.orders.set(column, order);
		}
		return order.list(descending);
	}

	/** A test for entries that hold all words of a text, each as the beginning of a word. Null for a text without words. */
	matcher(text) {
		const words = wordsOf(text ?? '').slice(0, MAX_WORDS);
		if (!words.length) return null;
		const found = new Uint32Array(this.vocabulary.length), all = 2 ** words.length - 1;
		words.forEach((word, at) => {
			const isIn = UNSPACED.test(word) ? known => known.includes(word) : known => known.startsWith(word);
			this.vocabulary.forEach((known, number) => {
				if (isIn(known)) found[number] |= 1 << at;
			});
		});
		return entry => {
			let bits = 0;
			for (const number of entry.words) if ((bits |= found[number]) === all) return true;
			return false;
		};
	}

	/** The records that match a text, in the order of their ids. */
	search(text) {
		const isMatch = this.matcher(text) ?? (() => true);
		return [...this.entries.values()].filter(isMatch).map(entry => entry.record).sort((one, other) => one.id - other.id);
	}

	/** The values of a facet that some record has or had. */
	valuesOf(name) {
		return this.facets.find(facet => facet.name === name)?.values ?? [];
	}

	/** The numbers of a record's words, each once. */
	wordsOf(record) {
		const turn = ++this.turn, found = [];
		for (const text of TEXTS[this.dataset](record)) if (text != null) for (const number of this.numbersOfText(String(text))) {
			if (this.marks[number] === turn) continue;
			this.marks[number] = turn;
			found.push(number);
		}
		return found;
	}

	/** The numbers of a text's words. Most texts are in many records. */
	numbersOfText(text) {
		let found = this.texts.get(text);
		if (found) return found;
		found = wordsOf(text).map(word => {
			let number = this.numbers.get(word);
			if (number === undefined) {
				this.numbers.set(word, number = this.vocabulary.push(word) - 1);
				this.marks.push(0);
			}
			return number;
		});
		if (this.texts.size > MAX_CACHED) this.texts.clear();
		this.texts.set(text, found);
		return found;
	}
}

/** The numbers of a record's values of a facet. Records with the same values share the list. */
function numbersOf(facet, values) {
	const joined = values.length === 1 ? values[0] : values.join('\0');
	let list = facet.lists.get(joined);
	if (list) return list;
	list = values.map(value => {
		let number = facet.numbers.get(value);
		if (number === undefined) facet.numbers.set(value, number = facet.values.push(value) - 1);
		return number;
	});
	facet.lists.set(joined, list);
	return list;
}
