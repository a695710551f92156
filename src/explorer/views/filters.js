// The filters beside a list, and the chosen ones above it.
import {html, useState} from '../preact.js';
import {FIRST_DAY, KINDS, LAST_DAY, UNSURE, WEEKDAYS, WEEKEND} from '../model/deadlines.js';
import {FACETS, NONE} from '../model/facets.js';
import {filtersOf, firstQuestion, toggle, toggleComing} from '../model/question.js';
import {RANGES, typedValue} from '../model/ranges.js';
import {asksForDeadlines, isComing} from '../model/select.js';
import {periodName} from './year.js';

const SHOWN = 8;
const OPEN = new Set(['area', 'region', 'year', 'confidence', 'access', 'fee', 'publisher']);
const SORTS = {conferences: {deadline: 'Next deadline', name: 'Name', start: 'Meeting', place: 'Place'}, journals: {name: 'Name', publisher: 'Publisher', access: 'Access', fee: 'Fee', impact: 'Impact factor', acceptance: 'Time to acceptance'}};

const isUnsure = (name, values = []) => ['confidence', 'dates'].includes(name) && values.length === UNSURE.length && UNSURE.every(one => values.includes(one));

/** The number of the chosen filters that the filters' panel holds. */
export const chosenOf = ({facets, ranges, kind, weekdays}) => [...Object.values(facets).flat(), ...Object.values(ranges), kind, weekdays].filter(Boolean).length;

function Facet({facet: {name, label, values}, chosen, onChoose, onChange}) {
	const [all, setAll] = useState(false);
	const [open, setOpen] = useState(OPEN.has(name) || values.some(({chosen}) => chosen));
	// Chosen values stay in sight, and the count of what is not known.
	const shown = all ? values : values.filter(({value, chosen}, at) => at < SHOWN || chosen || value === NONE);
	const hidden = values.length - shown.length, isOff = isUnsure(name, chosen);
	return html`<details open=${open} onToggle=${event => setOpen(event.target.open)}><summary>${label}</summary>${open && html`
		<ul aria-label=${label} translate="no">${shown.map(({value, text, count, chosen}) => html`<li key=${value}><label class="check">
			<input type="checkbox" checked=${chosen} onChange=${() => onChoose(name, value)} />
			<span><bdi>${text}</bdi></span> <span class="count">${count.toLocaleString('en')}</span></label></li>`)}
			${['confidence', 'dates'].includes(name) && html`<li><label class="check"><input type="checkbox" checked=${isOff} onChange=${() => onChange(name, isOff ? [] : UNSURE)} /><span>not confirmed</span></label></li>`}</ul>
		${(hidden > 0 || all && values.length > SHOWN) && html`<button class="plain" onClick=${() => setAll(!all)}>${all ? 'Show fewer' : `Show ${hidden} more`}<span class="hidden"> of ${label}</span></button>`}`}</details>`;
}

/** The field of a range. A number is a text field: that of browsers drops a comma without a word. What is no value stays in it. */
function RangeField({range, value = '', onChange, onLeave}) {
	const {name, label, kind} = range, isDate = kind === 'date', [text, setText] = useState(value);
	// Another question brings its own value.
	const shown = typedValue(range, text) === value ? text : value, isBad = !isDate && shown.trim() && !value;
	const type = event => {
		setText(event.target.value);
		onChange(typedValue(range, event.target.value));
	};
	return html`<div><label for=${name}>${label}</label>
		<input id=${name} type=${isDate ? 'date' : 'text'} inputmode=${isDate ? null : 'decimal'} autocomplete="off" value=${shown} min=${isDate ? FIRST_DAY : null} max=${isDate ? LAST_DAY : null}
			aria-invalid=${isBad ? 'true' : null} aria-describedby=${isBad ? `${name}-error` : null} onInput=${type} onBlur=${onLeave} />
		${isBad && html`<span id="${name}-error" class="soft" role="alert">Enter a number such as 2.5.</span>`}</div>`;
}

/** The fields of the ranges. Typing in them makes no steps in the history. */
const Ranges = ({question: {ranges, ...question}, onChange, onLeave}) => html`<div class="ranges">${RANGES[question.dataset].map(range => html`<${RangeField} key=${range.name} range=${range} value=${ranges[range.name]}
	onChange=${value => onChange({...question, ranges: {...ranges, [range.name]: value || undefined}}, true)} onLeave=${onLeave} />`)}</div>`;

/** The days of the week by which deadlines are chosen: those of a weekend, and each one. Others come from typed words. */
const CHOICES = [[WEEKEND, 'Saturday or Sunday'], ...WEEKDAYS.map(day => [day.toLowerCase(), day])];

/** The kind and the days of the week of the deadlines, and whether meetings that are over are left out. */
const Deadlines = ({question, onChange}) => html`<label for="kind">Kind of deadline</label>
	<select id="kind" value=${question.kind} onChange=${event => onChange({...question, kind: event.target.value})}>
		<option value="">Any</option>${Object.entries(KINDS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select>
	<label for="weekdays">Deadline on a</label>
	<select id="weekdays" value=${question.weekdays} onChange=${event => onChange({...question, weekdays: event.target.value})}>
		<option value="">Any day</option>${CHOICES.map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select>
	${!asksForDeadlines(question) && html`<label class="check"><input type="checkbox" checked=${isComing(question)} onChange=${() => onChange(toggleComing(question))} /><span>Coming only</span></label>`}`;

/** The order of the list, for cards, which have no heads of columns. */
const Sort = ({question, onChange}) => html`<div class="sorting"><label for="sort">Order</label> <select id="sort" value=${question.sort} onChange=${event => onChange({...question, sort: event.target.value, descending: false})}>
	${Object.entries(SORTS[question.dataset]).map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select></div>`;

/** The facets with their counts. `onTyped` comes after the reader left a field, `onLeave` goes to the results, `onClose` too, and closes the filters. */
export function Filters({question, facets, size, onChange, onTyped, onLeave, onClose}) {
	const leave = event => {
		event.preventDefault();
		onLeave();
	};
	const choose = (name, values) => onChange({...question, facets: Object.fromEntries(Object.entries({...question.facets, [name]: values}).filter(([, values]) => values.length))});
	return html`<section class="filters" id="filters" aria-label="Filters">
		<a class="skip" href="#results" onClick=${leave}>Skip the filters</a>
		<div class="facets"><${Sort} question=${question} onChange=${onChange} />
			<details open><summary>${question.dataset === 'journals' ? 'Numbers' : 'Dates'}</summary>${question.dataset === 'conferences' && html`<${Deadlines} question=${question} onChange=${onChange} />`}
				<${Ranges} question=${question} onChange=${onChange} onLeave=${onTyped} /></details>${facets.filter(({values}) => values.length).map(facet =>
			html`<${Facet} key=${facet.name} facet=${facet} chosen=${question.facets[facet.name]} onChoose=${(name, value) => onChange(toggle(question, name, value))} onChange=${choose} />`)}</div>
		<button class="toggle" onClick=${onClose}>Show ${size}</button></section>`;
}

/** The chips of a question: what differs from the first one, and is not told by the choice of a period. */
function chipsOf(question, day) {
	const own = periodName(question, day), isTold = ({name, value}) => name === 'past' && value === 'no' && question.past !== 'no' || own && ['within', 'due_from', 'due_to'].includes(name);
	const chips = filtersOf(question).filter(filter => !isTold(filter));
	// Four confidences that were chosen as one are one chip.
	for (const {name, label} of FACETS[question.dataset]) if (isUnsure(name, question.facets[name])) {
		const at = chips.findIndex(chip => chip.name === name), {[name]: gone, ...facets} = question.facets;
		chips.splice(at, gone.length, {name, text: `${label}: not confirmed`, without: {...question, facets}});
	}
	return chips;
}

/** The chosen filters, each with a button that removes it. */
export function Chosen({question, day, onChange}) {
	const chips = chipsOf(question, day);
	return chips.length > 0 && html`<ul class="chips" aria-label="Chosen filters">${chips.map(({text, without}) => html`<li><button class="chip" onClick=${() => onChange(without)}>
			<span class="hidden">Remove </span><bdi>${text}</bdi> <span aria-hidden="true">×</span></button></li>`)}
		${chips.length > 1 && html`<li><button class="plain" onClick=${() => onChange(firstQuestion(question.dataset))}>Clear all</button></li>`}</ul>`;
}
