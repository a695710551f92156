// The facets beside a list.
import {html, useState} from '../preact.js';
import {FIRST_DAY, LAST_DAY} from '../model/deadlines.js';
import {NONE} from '../model/facets.js';
import {toggle} from '../model/question.js';
import {RANGES, typedValue} from '../model/ranges.js';

const SHOWN = 8;
const OPEN = new Set(['area', 'region', 'year', 'confidence', 'access', 'fee', 'publisher']);

function Facet({facet: {name, label, values}, onChoose}) {
	const [all, setAll] = useState(false);
	const [open, setOpen] = useState(OPEN.has(name) || values.some(({chosen}) => chosen));
	// Chosen values stay in sight, and the count of what is not known.
	const shown = all ? values : values.filter(({value, chosen}, at) => at < SHOWN || chosen || value === NONE);
	const hidden = values.length - shown.length;
	return html`<details open=${open} onToggle=${event => setOpen(event.target.open)}><summary>${label}</summary>${open && html`
		<ul aria-label=${label}>${shown.map(({value, text, count, chosen}) => html`<li key=${value}><label class="check">
			<input type="checkbox" checked=${chosen} onChange=${() => onChoose(name, value)} />
			<span><bdi>${text}</bdi></span> <span class="count">${count.toLocaleString('en')}</span></label></li>`)}</ul>
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
function Ranges({question, onChange, onLeave}) {
	const {dataset, ranges} = question;
	return html`<details open><summary>${dataset === 'journals' ? 'Numbers' : 'Dates'}</summary><div class="ranges">${RANGES[dataset].map(range => html`<${RangeField} key=${range.name} range=${range} value=${ranges[range.name]}
		onChange=${value => onChange({...question, ranges: {...ranges, [range.name]: value || undefined}}, true)} onLeave=${onLeave} />`)}</div></details>`;
}

/** The facets with their counts. On a phone they are behind a button. `onLeave` goes to the results, of which there are `size`; `onTyped` comes after the reader left a field. */
export function Filters({question, facets, size, onChange, onTyped, onLeave}) {
	const [open, setOpen] = useState(false);
	const chosen = Object.values(question.facets).flat().length + Object.values(question.ranges).filter(Boolean).length;
	const leave = event => {
		event.preventDefault();
		setOpen(false);
		onLeave();
	};
	return html`<section class="filters" aria-label="Filters">
		<a class="skip" href="#results" onClick=${leave}>Skip the filters</a>
		<button class="quiet toggle" aria-expanded=${open} onClick=${() => setOpen(!open)}>Filters${chosen > 0 && ` (${chosen})`}</button>
		<div class="facets ${open ? 'open' : ''}"><${Ranges} question=${question} onChange=${onChange} onLeave=${onTyped} />${facets.filter(({values}) => values.length).map(facet =>
			html`<${Facet} key=${facet.name} facet=${facet} onChoose=${(name, value) => onChange(toggle(question, name, value))} />`)}</div>
		${open && html`<button class="toggle" onClick=${leave}>Show ${size}</button>`}</section>`;
}
