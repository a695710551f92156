// The facets beside a list.
import {html, useState} from '../preact.js';
import {LAST_DAY} from '../model/deadlines.js';
import {NONE} from '../model/facets.js';
import {toggle} from '../model/question.js';
import {RANGES, isValue} from '../model/ranges.js';

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

/** The fields of the ranges. Typing in them makes no steps in the history. */
function Ranges({question, onChange, onLeave}) {
	const {dataset, ranges} = question;
	const type = (range, text) => onChange({...question, ranges: {...ranges, [range.name]: isValue(range, text) ? text : undefined}}, true);
	return html`<details open><summary>${dataset === 'journals' ? 'Numbers' : 'Dates'}</summary><div class="ranges">${RANGES[dataset].map(range => html`<div key=${range.name}><label for=${range.name}>${range.label}</label>
		<input id=${range.name} type=${range.kind} value=${ranges[range.name] ?? ''} min=${range.kind === 'date' ? '1900-01-01' : 0} max=${range.kind === 'date' ? LAST_DAY : null} step=${range.kind === 'date' ? null : 'any'}
			onInput=${event => type(range, event.target.value)} onBlur=${onLeave} /></div>`)}</div></details>`;
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
