// Facets: the properties by which a reader narrows a list, and the values that a record has of each.
import {STATUS} from './deadlines.js';
import {fold} from './fold.js';

const STATUSES = Object.fromEntries(Object.entries(STATUS).map(([status, [word]]) => [status, word]));
/** The presentation formats, in words. */
export const FORMATS = {oral: 'Oral presentations', poster: 'Posters', e_poster: 'Electronic posters', published_abstract: 'Published abstracts', encore: 'Encores'};
const FEES = {0: 'No fee', '0-1000': 'Above 0 to 1,000 US dollars', '1000-2500': 'Above 1,000 to 2,500 US dollars', '2500-5000': 'Above 2,500 to 5,000 US dollars', '5000-': 'Above 5,000 US dollars'};

const countries = new Map(), spellings = new Map();
const lettersOf = country => fold(country).replace(/^the /, '').replace(/&/g, 'and').replace(/[^\p{L}\p{N}]/gu, '');

/** Sets the countries of each region, with other names: {region: 'country,alias,…|country|…'}. */
export function setRegions(regions) {
	countries.clear();
	spellings.clear();
	for (const [region, list] of Object.entries(regions)) for (const country of list.split('|')) {
		const names = country.split(',');
		for (const name of names) countries.set(lettersOf(name), {region, names});
	}
}

/** A country {region, names} in any of its spellings. */
function find(country) {
	if (country && !spellings.has(country)) spellings.set(country, countries.get(lettersOf(country)));
	return spellings.get(country);
}

/** The region of a country; undefined if it is not known. */
export const regionOf = country => find(country)?.region;

/** All names of a country, the usual one first: `United States`, `usa`. */
export const namesOf = country => find(country)?.names ?? [];

/** The value of a record without any. */
export const NONE = '';

const list = value => value == null || value === '' ? [] : [String(value)];
const fee = usd => usd == null ? [] : [usd === 0 ? '0' : usd <= 1000 ? '0-1000' : usd <= 2500 ? '1000-2500' : usd <= 5000 ? '2500-5000' : '5000-'];
// Records share tags, and a text that is made anew is slow to look up.
const labels = new WeakMap();
const label = tag => labels.get(tag) ?? labels.set(tag, `${tag.type}: ${tag.name}`).get(tag);
/** The formats of a record: `no` if it has none of them for certain, nothing if one that it may have is not announced. */
function formats(record) {
	const all = Object.keys(FORMATS), found = all.filter(format => record.formats?.[format]);
	return !found.length && all.every(format => record.formats?.[format] === false) ? ['no'] : found;
}
const tags = record => record.tags?.map(label) ?? [];
const organizations = record => [...new Set(record.organizations?.map(({name}) => name).filter(Boolean))];
/** The therapy areas that tags name. */
const areas = record => record.tags?.filter(({type}) => /^therap(y|eutic) areas?$/i.test(type)).map(({name}) => name) ?? [];

/**
 * The facets of each dataset: {name, label, valuesOf(record)}. A record without values has the value `NONE`, which `none` words. `text`
 * words the other values, `inOrder` sorts them by value instead of by count. `ofDeadlines`: of a list that is narrowed to deadlines,
 * only those deadlines count. `isOptional`: many datasets have no such values.
 */
export const FACETS = {
	conferences: [
		{name: 'area', label: 'Therapy area', valuesOf: record => record.therapy_areas ?? []},
		{name: 'region', label: 'Region', valuesOf: record => list(regionOf(record.country) ?? (record.country && 'Other'))},
		{name: 'country', label: 'Country', valuesOf: record => list(record.country)},
		{name: 'year', label: 'Year', inOrder: true, valuesOf: record => list(record.year)},
		{name: 'confidence', label: 'Confidence of deadlines', text: STATUSES, ofDeadlines: true,
			valuesOf: record => [...new Set([...list(record.abstract_due_date_status), ...list(record.late_breaking_due_date_status)])]},
		{name: 'dates', label: 'Confidence of meeting dates', text: STATUSES, valuesOf: record => list(record.start_date_status)},
		{name: 'format', label: 'Format', text: {...FORMATS, no: 'None of these'}, valuesOf: formats},
		{name: 'organization', label: 'Organization', none: 'No organization', isOptional: true, valuesOf: organizations},
		{name: 'tag', label: 'Tag', none: 'No tag', valuesOf: tags},
	],
	journals: [
		{name: 'area', label: 'Therapy area', none: 'No therapy area', isOptional: true, valuesOf: areas},
		{name: 'access', label: 'Access', valuesOf: record => list(record.publishing?.access)},
		{name: 'fee', label: 'Article fee', text: FEES, inOrder: true, valuesOf: record => fee(record.publishing?.apc_usd)},
		{name: 'publisher', label: 'Publisher', valuesOf: record => list(record.publisher)},
		{name: 'license', label: 'Content license', valuesOf: record => list(record.publishing?.content_license)},
		{name: 'organization', label: 'Organization', none: 'No organization', isOptional: true, valuesOf: organizations},
		{name: 'tag', label: 'Tag', none: 'No tag', valuesOf: tags},
	],
};

const byValue = (one, other) => one.value < other.value ? -1 : 1;
const byCount = (one, other) => other.count - one.count || byValue(one, other);
const noneLast = (one, other) => (one.value === NONE) - (other.value === NONE);

/** A value of a facet in words. */
export const wordOf = ({text, none = 'Not announced'}, value) => value === NONE ? none : text?.[value] ?? value;

/** Whether a record without values may have some that are not announced. */
export const isOpen = facet => !facet.none;

/** A value in words that say the facet too, where several facets have the same words. */
export const fullWordOf = (facet, value) => value === NONE && !facet.none || facet.text === STATUSES ? `${facet.label}: ${wordOf(facet, value).toLowerCase()}` : wordOf(facet, value);

/**
 * The values of a facet that have records or are chosen, and those of a fixed list, `NONE` last: [{value, text, count, chosen}]. An
 * optional facet has none if no record has any. `counts` are by a value's number.
 */
export function listValues(facet, counts, chosen = []) {
	const all = [...new Set([...facet.numbers.keys(), ...chosen])];
	if (facet.isOptional && all.every(value => value === NONE) && !chosen.length) return [];
	return all.map(value => ({value, count: counts[facet.numbers.get(value)] ?? 0, chosen: chosen.includes(value)})).filter(({value, count, chosen}) => count || chosen || facet.text && value !== NONE)
		.map(one => ({value: one.value, text: wordOf(facet, one.value), count: one.count, chosen: one.chosen})).sort((one, other) => noneLast(one, other) || (facet.inOrder ? byValue : byCount)(one, other));
}
