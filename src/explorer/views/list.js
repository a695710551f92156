// The list of a dataset: one question, answered from the page's copy.
import {html, useEffect, useMemo, useRef, useState} from '../preact.js';
import {calendar} from '../model/calendar.js';
import {csv} from '../model/csv.js';
import {KINDS, todayOf} from '../model/deadlines.js';
import {fileName, filesOf} from '../model/files.js';
import {isUnlicensed, usesCopy} from '../model/follower.js';
import {filtersOf, firstQuestion, format, hasKey, isNarrowed, parse, requestOf, titleOf, unknownOf} from '../model/question.js';
import {periodOf, select} from '../model/select.js';
import {meantBy} from '../model/suggest.js';
import {Copy, DATASETS, Table, Title, Unlicensed, count, date, save} from '../parts.js';
import {useCopy} from '../session.js';
import {Asked} from './asked.js';
import {News, Standing} from './changes.js';
import {Deadlines, columnsOf} from './columns.js';
import {ForDevelopers} from './developers.js';
import {Filters} from './filters.js';

const SHOWN = 50;
const PERIODS = [30, 60, 90];
const TYPED_MS = 300;

/** The view of a dataset's records: from the copy, or from the API if the page keeps no copy. */
export function List({dataset, at}) {
	const kept = useCopy(dataset);
	if (isUnlicensed(kept.state)) return html`<${Title}>${DATASETS[dataset][0]}<//><${Unlicensed} dataset=${dataset} />`;
	if (!usesCopy(kept.state)) return html`<${Asked} dataset=${dataset} params=${at.params} state=${kept.state} />`;
	return html`<${Title}>${DATASETS[dataset][0]}<//><${Standing} kept=${kept}><${News} dataset=${dataset} kept=${kept} /><//>
		${kept.isReady && html`<${Answered} dataset=${dataset} at=${at} kept=${kept} />`}`;
}

/** The question of the address, and a function that changes both. */
function useQuestion(dataset, at) {
	const read = () => parse(location.hash) ?? firstQuestion(dataset);
	const [question, setQuestion] = useState(read);
	const [waiting] = useState({at});
	useEffect(() => {
		if (waiting.at === at) return;
		waiting.at = at;
		clearTimeout(waiting.timer);
		setQuestion(read());
	}, [at]);
	const change = (next, typed) => {
		setQuestion(next);
		clearTimeout(waiting.timer);
		// Typing makes no steps in the history. By then the reader may be on the way to another view, which keeps its address.
		const from = location.hash;
		if (typed) waiting.timer = setTimeout(() => location.hash === from && history.replaceState(null, '', format(next)), TYPED_MS);
		else history.pushState(null, '', format(next));
	};
	useEffect(() => () => clearTimeout(waiting.timer), []);
	return [question, change];
}

function Answered({dataset, at, kept: {copy, index, log, version}}) {
	const [question, change] = useQuestion(dataset, at);
	const [shown, setShown] = useState(SHOWN);
	const results = useRef();
	const day = todayOf(), unknown = unknownOf(location.hash);
	const found = useMemo(() => select(index, question, day), [index, version, question, day]);
	useEffect(() => setShown(SHOWN), [question]);
	const rows = useRef(), more = useRef(0);
	// The button for more goes with the last rows. The focus moves on to the first of them.
	useEffect(() => {
		if (more.current && total <= shown) rows.current.querySelectorAll('tbody tr')[more.current]?.querySelector('a').focus();
		more.current = 0;
	}, [shown]);
	const showMore = () => {
		more.current = shown;
		setShown(shown + 2 * SHOWN);
	};
	const sorted = {by: question.sort, descending: question.descending,
		onSort: by => change({...question, sort: by, descending: by === question.sort && !question.descending})};
	// A removed chip takes its focus with it.
	const drop = next => {
		change(next);
		results.current.focus();
	};
	const total = question.mode === 'deadlines' ? found.deadlines.length : found.total;
	const noun = question.mode === 'deadlines' ? 'deadline' : DATASETS[dataset][1];
	return html`<${Ask} question=${question} onChange=${change} />
		<div class="columns"><${Filters} question=${question} facets=${found.facets} size=${count(total, noun)} onChange=${change} onLeave=${() => results.current.focus()} />
			<div class="found" ref=${rows}><div class="heading">
				<h2 class="results" ref=${results} tabindex="-1"><span role="status">${isNarrowed(question) && question.mode === 'list' ? `${total.toLocaleString('en')} of ${count(copy.size, noun)}` : count(total, noun)}</span></h2>
				<${Files} question=${question} found=${found} day=${day} /></div>
			<${Chosen} question=${question} onChange=${drop} />
			${unknown.length > 0 && html`<p class="soft" role="status">The address also asks for ${unknown.join(', ')}. This page does not know that, and shows the records without it.</p>`}
			${question.mode === 'deadlines' ? html`<${Deadlines} of=${found.deadlines.slice(0, shown)} day=${day} />`
				: found.total > 0 && html`<${Table} label=${DATASETS[dataset][0]} rows=${found.records.slice(0, shown)} sorted=${sorted}
					columns=${columnsOf(dataset, {day, log, period: periodOf(question, day)})} />`}
			${total === 0 && html`<${Nothing} index=${index} question=${question} day=${day} onChange=${drop} />`}
			${total > shown && html`<p class="row"><button onClick=${showMore}>Show more</button>
				<span class="soft" role="status">${shown.toLocaleString('en')} of ${total.toLocaleString('en')} are shown.</span></p>`}
		</div></div>
		<${ForDevelopers} dataset=${dataset} params=${requestOf(question)} />`;
}

/** What to do about an empty list: the next deadline after the period, a word as records spell it, or fewer filters. */
function Nothing({index, question, day, onChange}) {
	const later = {...question, within: null}, next = question.within && select(index, later, day).deadlines?.[0];
	const meant = useMemo(() => hasKey(question.words) ? null : meantBy(index, question.words).find(words => select(index, {...question, words}, day).total), [index, question, day]);
	if (!index.size) return html`<${Unlicensed} dataset=${question.dataset} />`;
	if (!next) return html`<p class="empty">${meant ? html`Did you mean <button class="plain" onClick=${() => onChange({...question, words: meant})}>${meant}</button>?` : 'Nothing fits all of this. Remove a filter or a word.'}</p>`;
	return html`<p class="empty">Nothing is due in this period. The next deadline is on ${date(next.date)}. <button class="plain" onClick=${() => onChange(later)}>Show all that are ahead</button></p>`;
}

/** The words, and the deadlines' period. */
function Ask({question, onChange}) {
	const {dataset, words, kind, within, mode} = question;
	const pressed = (on, text, next) => html`<button type="button" class="quiet" aria-pressed=${on} onClick=${() => onChange(next)}>${text}</button>`;
	return html`<form class="ask" role="search" onSubmit=${event => event.preventDefault()}>
		<label for="words" class="hidden">Search</label>
		<input id="words" type="search" value=${words} autocomplete="off" spellcheck="false" onInput=${event => onChange({...question, words: event.target.value}, true)}
			placeholder=${`Search by name, ${dataset === 'journals' ? 'publisher, ISSN' : 'place, therapy area'}, organization, tag`} />
		${hasKey(words) && html`<p class="soft" role="status">This looks like an API key. It is sent nowhere: the address, the links and the curl line leave it out.</p>`}
		${dataset === 'conferences' && html`<div class="row" role="group" aria-label="Deadlines">
			<label for="kind" class="hidden">Kind of deadline</label>
			<select id="kind" value=${kind} onChange=${event => onChange({...question, kind: event.target.value})}>
				<option value="">Any deadline</option>${Object.entries(KINDS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select>
			<span class="soft">in the next</span>
			${PERIODS.map(days => pressed(within === days, `${days} days`, {...question, within: within === days ? null : days}))}</div>
		<div class="row" role="group" aria-label="Show as">${pressed(mode === 'list', 'Table', {...question, mode: 'list'})}${pressed(mode === 'deadlines', 'Deadlines by month', {...question, mode: 'deadlines'})}</div>`}
	</form>`;
}

/** The chosen filters, each with a button that removes it. */
function Chosen({question, onChange}) {
	const filters = filtersOf(question);
	return filters.length > 0 && html`<ul class="chips" aria-label="Chosen filters">${filters.map(({text, without}) => html`<li><button class="chip" onClick=${() => onChange(without)}>
			<span class="hidden">Remove </span><bdi>${text}</bdi> <span aria-hidden="true">×</span></button></li>`)}
		<li><button class="plain" onClick=${() => onChange(firstQuestion(question.dataset))}>Clear all</button></li></ul>`;
}

/** The files of this view, and its address. */
function Files({question, found, day}) {
	const {dataset} = question;
	const [past, setPast] = useState(false);
	const {hasPast, counts, events, rows} = useMemo(() => filesOf(question, found, day, past), [question, found, day, past]);
	const file = (title, size, end, type, text) => html`<button class="quiet" onClick=${() => save(fileName(question, day, end), new Blob([text()], {type}))}>${title} (${size})<span class="hidden"> file of this view</span></button>`;
	return html`<div class="row">
		${hasPast && html`<label class="check"><input type="checkbox" checked=${past} onChange=${event => setPast(event.target.checked)} /><span>With past dates</span></label>`}
		${dataset === 'conferences' && file('Calendar', count(counts.events, 'date'), 'ics', 'text/calendar', () => calendar(events(), {host: location.host, name: titleOf(question)}))}
		${file('CSV', count(counts.rows, 'row'), 'csv', 'text/csv', () => csv(rows()))}
		<${Copy} text=${new URL(format(question), location.href).href}>Copy link<//></div>`;
}
