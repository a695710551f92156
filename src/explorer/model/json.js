// Records as the server writes them.

/** The names of the fields with numbers that may have a fraction. */
const FRACTIONS = ['impact_factor', 'citescore', 'sjr', 'apc_usd', 'min_weeks', 'max_weeks'];

const MEMBERS = new RegExp(`("(?:${FRACTIONS.join('|')})": ?)(-?\\d[\\d.e+-]*)`, 'g');

/** A number of these fields: with a fraction, without an exponent. */
export function fraction(number) {
	const [, sign, whole, rest = '', exponent = 0] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(number);
	const digits = whole + rest, point = whole.length + Number(exponent);
	if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
	return `${sign}${digits.slice(0, point).padEnd(point, '0')}.${digits.slice(point) || '0'}`;
}

/** A value as a text. `path` ends with the name of its field. */
export const textOf = (path, value) => typeof value === 'number' && FRACTIONS.some(name => path.endsWith(name)) ? fraction(value) : String(value);

/** A record's JSON, to the byte; with `indent`, in lines. */
export function jsonOf(record, indent) {
	// Quotes within texts are escaped, so two quotes before a colon enclose a key.
	return JSON.stringify(record, null, indent).replace(MEMBERS, (_, key, number) => key + fraction(number))
		.replace(/[\u0085\u2028\u2029]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
