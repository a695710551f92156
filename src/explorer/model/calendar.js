// Calendar files (RFC 5545).
import {LAST_DAY, STATUS, addDays, deadlinesOf, lastDayOf} from './deadlines.js';

/** The field of each kind of event: with the record's id it identifies the event, so that a later file renews it. */
const FIELDS = {meeting: 'start_date', abstract: 'abstract_due_date', late_breaking: 'late_breaking_due_date'};
const TITLES = {meeting: '', abstract: 'Abstracts due: ', late_breaking: 'Late-breaking abstracts due: '};

/**
 * The events of a record that end on a day or later: its deadlines, all or those of some confidences, and its meeting:
 * [{record, kind, date, confidence}].
 */
export function eventsOf(record, {from = '', confidences} = {}) {
	const events = deadlinesOf(record, {from, confidences});
	if (record.start_date && lastDayOf(record) >= from) events.push({record, kind: 'meeting', date: record.start_date, confidence: record.start_date_status});
	return events;
}

/** A text as a property value. */
const escape = text => String(text).replace(/[\\;,]/g, mark => '\\' + mark).replace(/\r\n|\r|\n/g, '\\n').replace(/[\x00-\x1f\x7f]/g, '');

/** A line in pieces of at most 75 bytes, never cut within a character. */
function fold(line) {
	// A code unit of UTF-16 takes at most three bytes of UTF-8.
	if (3 * line.length <= 75) return line;
	const pieces = [];
	let piece = '', bytes = 0;
	for (const letter of line) {
		const code = letter.codePointAt(0), size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
		if (bytes + size > 75) {
			pieces.push(piece);
			// The blank that begins the next line counts.
			[piece, bytes] = [' ', 1];
		}
		piece += letter;
		bytes += size;
	}
	return [...pieces, piece].join('\r\n');
}

const compact = day => day.replace(/-/g, '');
const stampOf = time => time.toISOString().replace(/[-:]|\.\d+/g, '');

/** A reminder, so many days before. */
const alarm = (days, title) => ['BEGIN:VALARM', 'ACTION:DISPLAY', `DESCRIPTION:${title}`, `TRIGGER:-P${days}D`, 'END:VALARM'];

function event({record, kind, date, confidence}, stamp, days) {
	const name = [record.name, record.abbv && `(${record.abbv})`, record.year].filter(Boolean).join(' ');
	const place = [record.venue, record.city, record.country].filter(Boolean).join(', ');
	const end = kind === 'meeting' ? lastDayOf(record) : date;
	const isWeb = /^https?:\/\/\S+$/i.test(record.url ?? '');
	const [word, meaning] = STATUS[confidence] ?? [confidence, ''], isSure = confidence === 'confirmed';
	const changed = new Date(record.updated_at), isKnown = !Number.isNaN(+changed), title = escape(`${TITLES[kind]}${name}${isSure ? '' : ` (${word})`}`);
	return ['BEGIN:VEVENT', `UID:conferences-${record.id}-${FIELDS[kind]}@medfeed`, `DTSTAMP:${stamp}`, isKnown && `SEQUENCE:${Math.floor(changed / 1000)}`, isKnown && `LAST-MODIFIED:${stampOf(changed)}`, `DTSTART;VALUE=DATE:${compact(date)}`,
		// Without an end an event lasts for one day. The day after the last one has no date.
		date < LAST_DAY && `DTEND;VALUE=DATE:${compact(addDays(end, 1))}`, `SUMMARY:${title}`,
		`DESCRIPTION:${escape([`Date ${word}: ${meaning}.`, record.therapy_areas?.join('; '), isWeb && record.url].filter(Boolean).join('\n'))}`,
		place && `LOCATION:${escape(place)}`, isWeb && `URL:${record.url.replace(/[\x00-\x20\x7f]/g, '')}`,
		`STATUS:${isSure ? 'CONFIRMED' : 'TENTATIVE'}`, 'TRANSP:TRANSPARENT', ...days ? alarm(days, title) : [], 'END:VEVENT'].filter(Boolean);
}

/**
 * A calendar of events [{record, kind, date, confidence}], each on whole days. `now` is the time at which it was made. `days`: a
 * reminder so many days before each event; none if it is 0.
 */
export function calendar(events, {now = new Date(), days = 0, name = 'medfeed'} = {}) {
	const stamp = stampOf(now);
	const lines = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//medfeed//explorer//EN', 'CALSCALE:GREGORIAN', `X-WR-CALNAME:${escape(name)}`,
		...events.flatMap(one => event(one, stamp, days)), 'END:VCALENDAR'];
	return lines.map(line => fold(line) + '\r\n').join('');
}
