// The list of a dataset: one question, answered from the page's copy.
import {html, useEffect, useMemo, useRef, useState} from '../preact.js';
import {target} from '../api.js';
import {date, shownDeadline, todayOf} from '../model/deadlines.js';
import {describe, isUnlicensed, usesCopy} from '../model/follower.js';
import {firstQuestion, hasKey, isNarrowed, parse, placeOf, requestOf, titleOf, toggleComing, unknownOf} from '../model/question.js';
import {isReversed} from '../model/ranges.js';
import {periodOf, select} from '../model/select.js';
import {meantBy} from '../model/suggest.js';
import {understood} from '../model/typed.js';
import {withoutTyped} from '../model/words.js';
import {Curl, DATASETS, Legend, Segments, Table, Unlicensed, count, link, useWindowTitle} from '../parts.js';
import {useCopy} from '../session.js';
import {Deadlines, columnsOf} from './columns.js';
import {Files, usePrinting} from './files.js';
import {Chosen, Filters, chosenOf} from './filters.js';
import {useHeld} from './held.js';
import {Shortlist, starColumn, useStars} from './shortlist.js';
import {leave} from './way.js';
import {Undated, undatedOf} from './undated.js';
import {Year} from './year.js';

const SHOWN = 50;
/** The most rows on paper. More would stop the browser for minutes. */
const MAX_PRINTED = 5000;
const TYPED_MS = 300;

/** The view of a dataset's records. */
export function List({dataset, at}) {
	const kept = useCopy(dataset), isAnswered = kept.isReady && usesCopy(kept.state);
	useWindowTitle(isAnswered ? '' : DATASETS[dataset][0]);
	if (isUnlicensed(kept.state)) return html`<${Unlicensed} dataset=${dataset} />`;
	if (!usesCopy(kept.state)) return html`<p class="problem" role="alert">${describe(kept.state)}</p><p><a href=${link(`developers/${dataset}`)}>Exports, change feed and sync token</a></p>`;
	return isAnswered && html`<${Answered} dataset=${dataset} at=${at} kept=${kept} />`;
}

/** The words of the addresses of this page's history, by the numbers in their states. They are in memory only. */
const typed = new Map();
/** Forgets all words. */
export const forgetWords = () => typed.clear();

/** The question of the address, and a function that changes both. */
function useQuestion(dataset, at) {
	// The history knows which addresses show the reader's own stars: the page keeps them as the stars change.
	const read = () => {
		const question = parse(location.hash) ?? firstQuestion(dataset);
		return {...question, words: typed.get(history.state?.words) ?? question.words, isOwn: Boolean(history.state?.isOwn)};
	};
	const [question, setQuestion] = useState(read);
	const [waiting] = useState({at});
	useEffect(() => {
		if (waiting.at === at) return;
		waiting.at = at;
		clearTimeout(waiting.timer);
		setQuestion(read());
	}, [at]);
	const stateOf = ({isOwn, words}) => {
		const number = words ? Math.random() : undefined;
		if (words) typed.set(number, words);
		return isOwn || words ? {...isOwn && {isOwn}, ...words && {words: number}} : null;
	};
	const change = (next, typed) => {
		setQuestion(next);
		clearTimeout(waiting.timer);
		// Typing makes no steps in the history. By then the reader may be on the way to another view, which keeps its address.
		const from = location.hash;
		waiting.write = () => {
			clearTimeout(waiting.timer);
			if (location.hash === from) history.replaceState(stateOf(next), '', placeOf(next));
			waiting.write = null;
		};
		if (typed) waiting.timer = setTimeout(waiting.write, TYPED_MS);
		else {
			waiting.write = null;
			history.pushState(stateOf(next), '', placeOf(next));
		}
	};
	useEffect(() => () => clearTimeout(waiting.timer), []);
	return [question, change, () => waiting.write?.()];
}

function Answered({dataset, at, kept: {copy, index, log, version}}) {
	const day = todayOf(), [typedQuestion, change, write] = useQuestion(dataset, at), question = useMemo(() => understood(typedQuestion, day), [typedQuestion, day]);
	// Another question begins with few rows again. The history knows how many there were when the reader left.
	const [seen, setSeen] = useState({question, shown: history.state?.shown ?? SHOWN});
	const results = useRef(), rows = useRef(), more = useRef(0), isPrinting = usePrinting(), [isOpen, setOpen] = useState(false);
	const unknown = unknownOf(location.hash), title = titleOf(question), stars = useStars(dataset);
	const fresh = useMemo(() => select(index, question, day), [index, version, question, day]);
	const shown = seen.question === question ? seen.shown : SHOWN;
	const {found, waiting, show} = useHeld(fresh, question, rows, shown);
	const marks = useMemo(() => new Map(log.since(log.opened, copy.records, true).map(({id, kind}) => [id, kind])), [log, copy, version]);
	const undated = useMemo(() => undatedOf(index, question, stars, day), [index, version, question, stars.join(), day]);
	const total = question.mode === 'deadlines' ? found.deadlines.length : found.total;
	const printed = Math.min(total, MAX_PRINTED), drawn = isPrinting ? printed : shown;
	// Titles stay in the browser's history, too.
	useWindowTitle(titleOf({...question, words: ''}));
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
	const toResults = () => {
		results.current.focus();
		results.current.scrollIntoView({block: 'nearest'});
	};
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
	const {past, unknown: open, missing} = found, columns = [starColumn(dataset), ...columnsOf(dataset, {day, marks, isPrinting})], period = periodOf(question, day);
	const isLeaving = useRef(false);
	// The filters of a phone go before the results get the focus. Otherwise the window scrolls past the first rows.
	useEffect(() => {
		if (isLeaving.current) toResults();
		isLeaving.current = false;
	}, [isOpen]);
	const close = () => {
		isLeaving.current = true;
		setOpen(false);
	};
	return html`<p class="paper">${title}${printed < total && `. The first ${count(printed, 'row')}; the CSV file has all`}</p>
		<div class="toolbar"><${Search} question=${typedQuestion} onChange=${change} onLeave=${write} onDone=${toResults} />
			<button class="ghost" aria-expanded=${isOpen} aria-controls="filters" onClick=${() => setOpen(!isOpen)}>Filter${chosenOf(question) > 0 && html` <span class="count">${chosenOf(question)}</span>`}</button>
			${dataset === 'conferences' && html`<${Segments} label="Show as" value=${question.mode} options=${[['list', 'Table'], ['deadlines', 'Months']]} onChange=${mode => change({...question, mode})} />`}
			<${Files} question=${question} found=${found} day=${day} size=${count(printed, 'row')} undated=${undated} /></div>
		${dataset === 'conferences' && html`<${Year} index=${index} question=${question} found=${found} day=${day} onChange=${change} />`}
		<div class=${isOpen ? 'columns' : ''} onClick=${event => leave(dataset, event, shown)}>${isOpen && html`<${Filters} question=${question} facets=${found.facets} size=${count(total, noun)} onChange=${change} onTyped=${write} onLeave=${toResults} onClose=${close} />`}
			<div class="found" ref=${rows} translate="no"><div class="heading"><h2 class="results" ref=${results} tabindex="-1" aria-live="polite">${size}</h2>
				${waiting > 0 && html`<button class="plain" onClick=${show}>${count(waiting, 'change')}: show</button>`}
				<${Shortlist} question=${question} found=${found} index=${index} onChange=${change} onLeave=${toResults} onFollow=${keepUp} />
				<${Chosen} question=${question} day=${day} onChange=${drop} /></div>
			${unknown.length > 0 && html`<p class="soft" role="status">The address also asks for ${unknown.join(', ')}. This page does not know that, and shows the records without it.</p>`}
			${question.mode === 'deadlines' ? html`<${Deadlines} of=${found.deadlines} most=${drawn} columns=${columns} />`
				: found.total > 0 && html`<${Table} label=${DATASETS[dataset][0]} columns=${columns} sorted=${isPrinting ? null : sorted}
					rows=${found.records.slice(0, drawn).map(record => ({record, due: dataset === 'conferences' && shownDeadline(record, day, period)}))} />`}
			${total === 0 && html`<${Nothing} index=${index} question=${question} day=${day} onChange=${drop} />`}
			${total > drawn && html`<p class="row"><button class="quiet" onClick=${showMore}>Show more</button>
				<span class="soft" role="status">${shown.toLocaleString('en')} of ${total.toLocaleString('en')} are shown.</span></p>`}
			<${Undated} of=${undated} isShown=${question.mode === 'deadlines'} />
			${past > 0 && html`<p class="soft more"><span role="status">${count(past, 'more', 'more')} ${past === 1 ? 'is' : 'are'} over.</span> <button class="plain" onClick=${() => drop(toggleComing(question))}>Show ${past === 1 ? 'it' : 'them'} too</button></p>`}
			${open > 0 && !isReversed(question.ranges) && html`<p class="soft more"><span role="status">${count(open, 'more', 'more')} may fit: not all that you filter by is announced.</span> <button class="plain" onClick=${() => drop({...question, unknown: true})}>Show ${open === 1 ? 'it' : 'them'} too</button></p>`}
			${dataset === 'conferences' && html`<div class="paper"><${Legend} /></div>`}
		</div></div>
		<${ForDevelopers} dataset=${dataset} params=${requestOf(question)} />`;
}

/** The fold below a list: the nearest request of the API. */
const ForDevelopers = ({dataset, params}) => html`<details class="developers"><summary>For developers</summary>
	<p>This page keeps a copy of the export and follows the change feed. The API answers the same question as far as its filters go:</p>
	<${Curl} of=${{url: target(dataset, params), method: 'GET'}} />
	<p><a href=${link(`developers/${dataset}`)}>Exports, change feed and sync token</a></p></details>`;

/** Where words are looked for, and what else can be typed. */
const LOOKED_IN = {
	conferences: 'Words are looked for in names, places, areas, organizations, tags, months and years. “weekend”, “next month” and “in 30 days” are times of deadlines.',
	journals: 'Words are looked for in names, publishers, access, licenses, ISSNs, organizations and tags. Figures are typed as “impact >5”, “fee <3000”, “12 weeks” or “no fee”, or set under Filter.',
};

/** What to do about an empty list: the next deadline after the period, a word as records spell it, or fewer filters. */
function Nothing({index, question, day, onChange}) {
	const later = {...question, within: null}, next = question.within && select(index, {...later, mode: 'deadlines'}, day).deadlines[0];
	const meant = useMemo(() => hasKey(question.words) ? null : meantBy(index, question.words).find(words => select(index, {...question, words, past: 'yes'}, day).total), [index, question, day]);
	const alone = useMemo(() => hasKey(question.words) ? [] : index.unknownWords(question.words), [index, question]);
	if (!index.size) return html`<${Unlicensed} dataset=${question.dataset} />`;
	if (isReversed(question.ranges)) return html`<p class="empty">The period ends before it begins. Change one of its days.</p>`;
	if (!next) return html`<p class="empty">${meant ? html`Did you mean <button class="plain" onClick=${() => onChange({...question, words: meant})}>${meant}</button>?` : alone.length ? html`No record has <strong>${alone.join(', ')}</strong>. ${LOOKED_IN[question.dataset]} <button class="plain" onClick=${() => onChange({...question, words: withoutTyped(question.words, alone)})}>Search without ${alone.length === 1 ? 'this word' : 'these words'}</button>` : 'Nothing fits all of this. Remove a filter or a word.'}</p>`;
	return html`<p class="empty">Nothing is due in this period. The next deadline is on ${date(next.date)}. <button class="plain" onClick=${() => onChange(later)}>Show all that are ahead</button></p>`;
}

/** The field for words. The Enter key goes to the results. */
function Search({question: {dataset, words, ...question}, onChange, onLeave, onDone}) {
	const done = event => {
		event.preventDefault();
		onDone();
	};
	return html`<form class="search" role="search" onSubmit=${done}><label for="words" class="hidden">Search</label>
		<input id="words" type="search" value=${words} autocomplete="off" spellcheck="false" onInput=${event => onChange({...question, dataset, words: event.target.value}, true)} onBlur=${onLeave}
			placeholder=${`Search ${dataset === 'journals' ? 'names, publishers, ISSNs' : 'names, places, areas'}`} />
		${hasKey(words) && html`<p class="soft" role="status">This looks like an API key. It is sent nowhere: the address, the links and the curl line leave it out.</p>`}</form>`;
}
