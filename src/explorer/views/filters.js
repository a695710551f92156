// The facets beside a list.
import {html, useState} from '../preact.js';
import {NONE} from '../model/facets.js';
import {toggle} from '../model/question.js';

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

/** The facets with their counts. On a phone they are behind a button. `onLeave` goes to the results, of which there are `size`. */
export function Filters({question, facets, size, onChange, onLeave}) {
	const [open, setOpen] = useState(false);
	const chosen = Object.values(question.facets).flat().length;
	const leave = event => {
		event.preventDefault();
		setOpen(false);
		onLeave();
	};
	return html`<section class="filters" aria-label="Filters">
		<a class="skip" href="#results" onClick=${leave}>Skip the filters</a>
		<button class="quiet toggle" aria-expanded=${open} onClick=${() => setOpen(!open)}>Filters${chosen > 0 && ` (${chosen})`}</button>
		<div class="facets ${open ? 'open' : ''}">${facets.filter(({values}) => values.length).map(facet =>
			html`<${Facet} key=${facet.name} facet=${facet} onChoose=${(name, value) => onChange(toggle(question, name, value))} />`)}</div>
		${open && html`<button class="toggle" onClick=${leave}>Show ${size}</button>`}</section>`;
}
