// The list of a dataset: one question, answered from the page's copy.
import {html, useEffect, useMemo, useRef, useState} from '../preact.js';
import {KINDS, todayOf} from '../model/deadlines.js';
import {describe, isElsewhere, isUnlicensed, usesCopy} from '../model/follower.js';
import {filtersOf, firstQuestion, format, hasKey, isNarrowed, parse, requestOf, titleOf, toggleComing, unknownOf} from '../model/question.js';
import {isReversed} from '../model/ranges.js';
import {asksForDeadlines, isComing, periodOf, select} from '../model/select.js';
import {meantBy} from '../model/suggest.js';
import {DATASETS, Table, Title, Toggle, Unlicensed, count, date, useWindowTitle} from '../parts.js';
import {useCopy} from '../session.js';
import {Asked} from './asked.js';
import {News, Standing} from './changes.js';
import {Deadlines, columnsOf} from './columns.js';
import {ForDevelopers} from './developers.js';
import {Files, usePrinting} from './files.js';
import {Filters} from './filters.js';
import {leave} from './record.js';
import {Shortlist, starColumn} from './shortlist.js';

const SHOWN = 50;
/** The most rows on paper. More would stop the browser for minutes. */
const MAX_PRINTED = 5000;
const PERIODS = [30, 60, 90];
const TYPED_MS = 300;

/** The view of a dataset's records: from the copy, or from the API if the page keeps no copy. */
export function List({dataset, at}) {
	const kept = useCopy(dataset);
	if (isUnlicensed(kept.state)) return html`<${Title}>${DATASETS[dataset][0]}<//><${Unlicensed} dataset=${dataset} />`;
	if (isElsewhere(kept.state)) return html`<${Title}>${DATASETS[dataset][0]}<//><p class="problem" role="alert">${describe(kept.state)}</p>`;
	if (!usesCopy(kept.state)) return html`<${Asked} dataset=${dataset} params=${at.params} state=${kept.state} />`;
	return html`<${Title}>${DATASETS[dataset][0]}<//><${Standing} kept=${kept}><${News} dataset=${dataset} kept=${kept} /><//>
		${kept.isReady && html`<${Answered} dataset=${dataset} at=${at} kept=${kept} />`}`;
}

/** The question of the address, and a function that changes both. */
function useQuestion(dataset, at) {
	// The history knows which addresses show the reader's own stars: the page keeps them as the stars change.
	const read = () => ({...parse(location.hash) ?? firstQuestion(dataset), isOwn: Boolean(history.state?.isOwn)});
	const [question, setQuestion] = useState(read);
	const [waiting] = useState({at});
	useEffect(() => {
		if (waiting.at === at) return;
		waiting.at = at;
		clearTimeout(waiting.timer);
		setQuestion(read());
	}, [at]);
	const stateOf = ({isOwn}) => isOwn ? {isOwn} : null;
	const change = (next, typed) => {
		setQuestion(next);
		clearTimeout(waiting.timer);
		// Typing makes no steps in the history. By then the reader may be on the way to another view, which keeps its address.
		const from = location.hash;
		waiting.write = () => {
			clearTimeout(waiting.timer);
			if (location.hash === from) history.replaceState(stateOf(next), '', format(next));
			waiting.write = null;
		};
		if (typed) waiting.timer = setTimeout(waiting.write, TYPED_MS);
		else {
			waiting.write = null;
			history.pushState(stateOf(next), '', format(next));
		}
	};
	useEffect(() => () => clearTimeout(waiting.timer), []);
	return [question, change, () => waiting.write?.()];
}

function Answered({dataset, at, kept: {copy, index, log, version}}) {
	const [question, change, write] = useQuestion(dataset, at);
	// Another question begins with few rows again. The history knows how many there were when the reader left.
	const [seen, setSeen] = useState({question, shown: history.state?.shown ?? SHOWN});
	const results = useRef(), isPrinting = usePrinting();
	const day = todayOf(), unknown = unknownOf(location.hash), title = titleOf(question);
	const found = useMemo(() => select(index, question, day), [index, version, question, day]);
	const marks = useMemo(() => new Map(log.since(log.opened, copy.records, true).map(({id, kind}) => [id, kind])), [log, copy, version]);
	const total = question.mode === 'deadlines' ? found.deadlines.length : found.total;
	const shown = seen.question === question ? seen.shown : SHOWN, printed = Math.min(total, MAX_PRINTED), drawn = isPrinting ? printed : shown;
	const rows = useRef(), more = useRef(0);
	useWindowTitle(title);
	useEffect(() => {
		const {row, top} = history.state ?? {};
		if (top === undefined) return;
		// Back at the row that led away.
		(rows.current.querySelector(`a[href="${CSS.escape(row)}"]`) ?? results.current).focus({preventScroll: true});
		scrollTo(0, top);
	}, []);
	// The button for more goes with the last rows. The focus moves on to the first of them.
	useEffect(() => {
		if (more.current && total <= shown) rows.current.querySelectorAll('tbody tr')[more.current]?.querySelector('a').focus();
		more.current = 0;
	}, [shown]);
	const showMore = () => {
		more.current = shown;
		setSeen({question, shown: shown + 2 * SHOWN});
	};
	const sorted = {by: question.sort, descending: question.descending,
		onSort: by => change({...question, sort: by, descending: by === question.sort && !question.descending})};
	const toResults = () => results.current.focus();
	// A removed chip takes its focus with it.
	const drop = next => {
		change(next);
		toResults();
	};
	// Stars that go take their rows with them, but the reader stays in the table.
	const keepUp = next => {
		change(next, true);
		write();
	};
	const noun = question.mode === 'deadlines' ? 'deadline' : DATASETS[dataset][1];
	const isPart = question.mode === 'list' && (isNarrowed(question) || total < copy.size), size = isPart ? `${total.toLocaleString('en')} of ${count(copy.size, noun)}` : count(total, noun);
	const {past, unknown: open, missing} = found, columns = [starColumn(dataset)];
	return html`<p class="paper">${title}${printed < total && `. The first ${count(printed, 'row')}; the CSV file has all`}</p><${Ask} question=${question} onChange=${change} onLeave=${write} />
		<div class="columns" onClick=${event => leave(dataset, event, shown)}><${Filters} question=${question} facets=${found.facets} size=${count(total, noun)} onChange=${change} onTyped=${write} onLeave=${toResults} />
			<div class="found" ref=${rows}><div class="heading">
				<h2 class="results" ref=${results} tabindex="-1"><span role="status">${size}</span></h2>
				<${Files} question=${question} found=${found} day=${day} size=${count(printed, 'row')} /></div>
			<${Shortlist} question=${question} missing=${missing} total=${found.total} onChange=${change} onLeave=${toResults} onFollow=${keepUp} />
			<${Chosen} question=${question} onChange=${drop} />
			${unknown.length > 0 && html`<p class="soft" role="status">The address also asks for ${unknown.join(', ')}. This page does not know that, and shows the records without it.</p>`}
			${past > 0 && html`<p class="soft"><span role="status">${count(past, 'more', 'more')} ${past === 1 ? 'is' : 'are'} over.</span> <button class="plain" onClick=${() => drop(toggleComing(question))}>Show ${past === 1 ? 'it' : 'them'} too</button></p>`}
			${open > 0 && !isReversed(question.ranges) && html`<p class="soft"><span role="status">${count(open, 'more', 'more')} may fit: not all that you filter by is announced.</span> <button class="plain" onClick=${() => drop({...question, unknown: true})}>Show ${open === 1 ? 'it' : 'them'} too</button></p>`}
			${question.mode === 'deadlines' ? html`<${Deadlines} of=${found.deadlines} most=${drawn} day=${day} before=${columns} />`
				: found.total > 0 && html`<${Table} label=${DATASETS[dataset][0]} rows=${found.records.slice(0, drawn)} sorted=${sorted}
					columns=${[...columns, ...columnsOf(dataset, {day, marks, period: periodOf(question, day)})]} />`}
			${total === 0 && html`<${Nothing} index=${index} question=${question} day=${day} onChange=${drop} />`}
			${total > drawn && html`<p class="row"><button onClick=${showMore}>Show more</button>
				<span class="soft" role="status">${shown.toLocaleString('en')} of ${total.toLocaleString('en')} are shown.</span></p>`}
		</div></div>
		<${ForDevelopers} dataset=${dataset} params=${requestOf(question)} />`;
}

/** What to do about an empty list: the next deadline after the period, a word as records spell it, or fewer filters. */
function Nothing({index, question, day, onChange}) {
	const later = {...question, within: null}, next = question.within && select(index, {...later, mode: 'deadlines'}, day).deadlines[0];
	const meant = useMemo(() => hasKey(question.words) ? null : meantBy(index, question.words).find(words => select(index, {...question, words, past: 'yes'}, day).total), [index, question, day]);
	if (!index.size) return html`<${Unlicensed} dataset=${question.dataset} />`;
	if (isReversed(question.ranges)) return html`<p class="empty">The period ends before it begins. Change one of its days.</p>`;
	if (!next) return html`<p class="empty">${meant ? html`Did you mean <button class="plain" onClick=${() => onChange({...question, words: meant})}>${meant}</button>?` : 'Nothing fits all of this. Remove a filter or a word.'}</p>`;
	return html`<p class="empty">Nothing is due in this period. The next deadline is on ${date(next.date)}. <button class="plain" onClick=${() => onChange(later)}>Show all that are ahead</button></p>`;
}

/** The words, and the deadlines' period. */
function Ask({question, onChange, onLeave}) {
	const {dataset, words, kind, within, mode} = question;
	const pressed = (on, text, next) => html`<${Toggle} on=${on} onChange=${() => onChange(next)}>${text}<//>`;
	return html`<form class="ask" role="search" onSubmit=${event => event.preventDefault()}>
		<label for="words" class="hidden">Search</label>
		<input id="words" type="search" value=${words} autocomplete="off" spellcheck="false" onInput=${event => onChange({...question, words: event.target.value}, true)} onBlur=${onLeave}
			placeholder=${`Search by name, ${dataset === 'journals' ? 'publisher, ISSN' : 'place, therapy area'}, organization, tag`} />
		${hasKey(words) && html`<p class="soft" role="status">This looks like an API key. It is sent nowhere: the address, the links and the curl line leave it out.</p>`}
		${dataset === 'conferences' && html`<div class="row" role="group" aria-label="Deadlines">
			<label for="kind" class="hidden">Kind of deadline</label>
			<select id="kind" value=${kind} onChange=${event => onChange({...question, kind: event.target.value})}>
				<option value="">Any deadline</option>${Object.entries(KINDS).map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select>
			<span class="soft">in the next</span>
			${PERIODS.map(days => pressed(within === days, `${days} days`, {...question, within: within === days ? null : days}))}</div>
		${!asksForDeadlines(question) && html`<div class="row">${pressed(isComing(question), 'Coming only', toggleComing(question))}</div>`}
		<div class="row" role="group" aria-label="Show as">${pressed(mode === 'list', 'Table', {...question, mode: 'list'})}${pressed(mode === 'deadlines', 'Deadlines by month', {...question, mode: 'deadlines'})}</div>`}
	</form>`;
}

/** The chosen filters, each with a button that removes it. */
function Chosen({question, onChange}) {
	const filters = filtersOf(question);
	return filters.length > 0 && html`<ul class="chips" aria-label="Chosen filters">${filters.map(({text, without}) => html`<li><button class="chip" onClick=${() => onChange(without)}>
			<span class="hidden">Remove </span><bdi>${text}</bdi> <span aria-hidden="true">×</span></button></li>`)}
		${filters.length > 1 && html`<li><button class="plain" onClick=${() => onChange(firstQuestion(question.dataset))}>Clear all</button></li>`}</ul>`;
}
