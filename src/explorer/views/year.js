// The deadlines of a year, a bar a month, and the periods of deadlines.
import {html, useEffect, useState} from '../preact.js';
import {KINDS, addDays, monthsFrom} from '../model/deadlines.js';
import {periodOf, select} from '../model/select.js';
import {Choice, count, rove} from '../parts.js';

const FIELDS = Object.keys(KINDS).map(kind => [`${kind}_due_date`, `${kind}_due_date_status`]);
const PERIODS = [30, 60, 90];
/** The bars follow the list after this time, so that they delay no keystroke. */
const PAUSE_MS = 150;

const isDated = ({ranges}) => Boolean(ranges.due_from || ranges.due_to);
const within = (question, days, from, to) => ({...question, within: days, ranges: {...question.ranges, due_from: from, due_to: to}});

/** The numbers of deadlines by month that a question has without its period. `found` answers the question with it. */
function countsOf(index, question, found, today) {
	const whole = within(question, null), counts = new Map(), {from, confidences} = periodOf(whole, today), end = addDays(from, 366);
	const put = (date, confidence) => {
		if (!date || date < from || date > end || confidences && !confidences.includes(confidence)) return;
		const month = date.slice(0, 7);
		counts.set(month, (counts.get(month) ?? 0) + 1);
	};
	const {records, deadlines} = question.within || isDated(question) ? select(index, whole, today) : found;
	if (deadlines) for (const {date, confidence} of deadlines) put(date, confidence);
	// Without lists of deadlines, which would stay in memory.
	else for (const record of records) for (const [date, status] of FIELDS) put(record[date], record[status]);
	return counts;
}

const [short, long] = ['short', 'long'].map(month => new Intl.DateTimeFormat('en-GB', {month, ...month === 'long' && {year: 'numeric'}, timeZone: 'UTC'}));

/** The period that a question asks for, as the choices name it: days, a month, '' for any; null for another period. */
export function periodName({within, ranges: {due_from, due_to}}, today) {
	if (within) return !due_from && !due_to && PERIODS.includes(within) ? within : null;
	if (!due_from && !due_to) return '';
	return monthsFrom(today).find(({from, to}) => from === due_from && to === due_to)?.month ?? null;
}

/** The choice of a period: any, the next days, or a month of the year, each with a bar of its deadlines. */
export function Year({index, question, found, day, onChange}) {
	const [counts, setCounts] = useState(null), months = monthsFrom(day), chosen = periodName(question, day);
	useEffect(() => {
		const timer = setTimeout(() => setCounts(countsOf(index, question, found, day)), counts ? PAUSE_MS : 0);
		return () => clearTimeout(timer);
	}, [found]);
	const most = Math.max(1, ...months.map(({month}) => counts?.get(month) ?? 0));
	const choose = (own, ...period) => onChange(own === chosen ? within(question, null) : within(question, ...period));
	const stop = chosen ?? '';
	return html`<div class="strip" role="radiogroup" aria-label="Deadline" onKeyDown=${rove}>
		<span class="label" aria-hidden="true">Deadline</span>
		<div class="segments"><${Choice} on=${chosen === ''} isStop=${stop === ''} onChoose=${() => onChange(within(question, null))}>Any<//>
			${PERIODS.map(days => html`<${Choice} on=${chosen === days} isStop=${stop === days} onChoose=${() => choose(days, days)}>${days}<span class="unit"> days</span><//>`)}</div>
		<div class="year">${months.map(({month, from, to}) => {
			const size = counts?.get(month) ?? 0, name = short.format(new Date(month)), words = `${long.format(new Date(month))}: ${count(size, 'deadline')}`;
			return html`<${Choice} class="bar" on=${chosen === month} isStop=${stop === month} onChoose=${() => choose(month, null, from, to)} title=${words} aria-label=${words}>
				<span class="size" style=${{'--size': size / most}}></span><span class="month">${name[0]}<span class="rest">${name.slice(1, 3)}${month.endsWith('-01') && ` ’${month.slice(2, 4)}`}</span></span><//>`;
		})}</div></div>`;
}
