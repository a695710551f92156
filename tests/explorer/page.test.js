// Runs cases of the explorer's other scripts, outside of a browser: requests and curl lines, words and columns, copies.
//
// The variable EXPLORER_PAGE names a folder with the scripts as the page loads them. Components without state are called
// as functions; their texts and attributes are read from what they return.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import test from 'node:test';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

const PAGE = pathToFileURL(process.env.EXPLORER_PAGE + '/');
globalThis.location = {href: 'http://127.0.0.1:8080/o%27neill/#/conferences', hash: '', host: '127.0.0.1:8080'};
const page = new EventTarget();
globalThis.addEventListener = page.addEventListener.bind(page);
globalThis.document = {hidden: false, title: '', addEventListener() {}, removeEventListener() {}, querySelector: () => ({content: globalThis.demoPath ?? ''})};

const load = name => import(new URL(name, PAGE));
const api = await load('api.js'), parts = await load('parts.js'), columns = await load('views/columns.js'), question = await load('model/question.js');
const {Change} = await load('views/changes.js'), {FACETS} = await load('model/facets.js'), {date, shownDeadline} = await load('model/deadlines.js');
const ROOT = 'http://127.0.0.1:8080/o%27neill/v1/';

const BLOCKS = ['div', 'dt', 'dd', 'h2', 'h3', 'li', 'p'];

/** The text of what a component returns, with blanks around blocks. Components below it are called. */
function textOf(node) {
	if (node == null || typeof node === 'boolean') return '';
	if (Array.isArray(node)) return node.map(textOf).join('');
	if (typeof node !== 'object') return String(node);
	const {children, ...props} = node.props ?? {};
	const blank = BLOCKS.includes(node.type) ? ' ' : '';
	return typeof node.type === 'function' ? textOf(node.type({...props, children})) : blank + textOf(children) + blank;
}

/** All elements of a kind in what a component returns. */
function all(node, kind) {
	if (Array.isArray(node)) return node.flatMap(one => all(one, kind));
	if (!node || typeof node !== 'object') return [];
	if (typeof node.type === 'function') return all(node.type(node.props), kind);
	return [...node.type === kind ? [node] : [], ...all(node.props.children, kind)];
}

const words = node => textOf(node).replace(/\s+/g, ' ').trim();

test('a shell passes every part of a curl line on as it is', () => {
	const passed = line => {
		assert.ok(line.startsWith('curl '), line);
		const options = {encoding: 'utf8', env: {...process.env, MEDFEED_KEY: "the shell's key"}};
		return execFileSync('sh', ['-c', line.replace(/^curl /, "printf '%s\\0' ")], options).split('\0').slice(0, -1);
	};
	for (const text of ["'", "''", "it's", "a'b'c", "';touch pwned;'", '"', '$(touch pwned)', '`touch pwned`', '\\', "\\'", '!', 'a b', 'a\nb', '*', '~', '#', '&', 'ü 東', '-H']) {
		const url = `http://h/${text}?q=${text}`;
		assert.deepEqual(passed(api.curl({url, method: 'GET'}, text)), ['-H', `Authorization: Bearer ${text}`, url], text);
		assert.deepEqual(passed(api.curl({url, method: 'HEAD'}, null)), ['-I', '-H', "Authorization: Bearer the shell's key", url], text);
		assert.deepEqual(passed(api.curl({url, method: 'GET'}, text, '--compressed -o a.csv ')), ['-H', `Authorization: Bearer ${text}`, '--compressed', '-o', 'a.csv', url], text);
	}
	assert.equal(api.curl({url: "http://h/o'n'b", method: 'GET'}, "k'e'y"), String.raw`curl -H 'Authorization: Bearer k'\''e'\''y' 'http://h/o'\''n'\''b'`);
	assert.equal(api.curl({url: 'http://h/', method: 'GET'}), `curl -H "Authorization: Bearer $MEDFEED_KEY" 'http://h/'`);
});

test('a target encodes each part, and leaves out empty ones', () => {
	assert.equal(api.target('conferences', {q: "O'Neill & Co (x)! *+%=?#/ü"}), ROOT + 'conferences?q=O%27Neill%20%26%20Co%20%28x%29%21%20%2A%2B%25%3D%3F%23%2F%C3%BC');
	assert.equal(api.target("a'b/c d?e#f"), ROOT + 'a%27b/c%20d%3Fe%23f');
	assert.equal(api.target('conferences', {a: '', b: null, c: undefined, d: 0, e: false, f: 'x'}), ROOT + 'conferences?d=0&e=false&f=x');
	for (const params of [undefined, null, {}, {q: ''}]) assert.equal(api.target('journals', params), ROOT + 'journals');
	assert.equal(api.query({"it's": '&', 'a=b': '='}), 'it%27s=%26&a%3Db=%3D');
	// A key is in no address, whatever box it was typed into. A position may hold its letters.
	for (const [params, expected] of [[{q: 'mfk_a'}, ''], [{q: 'a mfk_b', limit: 5}, 'q=a&limit=5'], [{country: 'MFK_a'}, ''], [{since: 'mfk_a', limit: 1}, 'limit=1'],
		[{since: 'xmfk_a'}, 'since=xmfk_a'], [{q: ' a '}, 'q=%20a%20']]) assert.equal(api.query(params), expected);
});

test('a link leads to the question that it names', () => {
	assert.equal(parts.link('conferences'), '#/conferences');
	assert.equal(parts.link('conferences', {q: ''}), '#/conferences');
	for (const area of ["Crohn's & Colitis", 'a+b', '100 %', 'what? #1', 'ü=東', '(x)!*', 'a/b']) {
		assert.deepEqual(question.parse(parts.link('conferences', {area})).facets, {area: [area]}, area);
		assert.deepEqual(question.parse(parts.link('journals', {tag: `Topic: ${area}`})).facets, {tag: [`Topic: ${area}`]}, area);
	}
});

test('days in words', () => {
	for (const [from, to, expected] of [
		['2026-05-29', undefined, 'Fri 29 May 2026'], ['2026-05-29', null, 'Fri 29 May 2026'], ['2026-05-29', '2026-05-29', 'Fri 29 May 2026'], ['2026-05-29', '2026-05-31', 'Fri 29 – Sun 31 May 2026'],
		['2026-05-29', '2026-06-02', 'Fri 29 May – Tue 2 Jun 2026'], ['2026-12-30', '2027-01-02', 'Wed 30 Dec 2026 – Sat 2 Jan 2027'], ['2026-05-29', '2027-05-29', 'Fri 29 May 2026 – Sat 29 May 2027'],
		['2026-05-29', '2026-06-29', 'Fri 29 May – Mon 29 Jun 2026'], ['2026-01-01', '2026-12-09', 'Thu 1 Jan – Wed 9 Dec 2026'], ['2028-02-29', null, 'Tue 29 Feb 2028'], ['1900-01-01', null, 'Mon 1 Jan 1900'], ['9999-12-31', null, 'Fri 31 Dec 9999'],
		['2026-03-15T09:30:00Z', undefined, 'Sun 15 Mar 2026'], [null, '2026-05-29', null],
	]) assert.equal(date(from, to), expected, `${from} ${to}`);
	for (const [today, day, expected] of [
		['2027-01-01', '2027-01-01', 'today'], ['2026-12-31', '2027-01-01', 'tomorrow'], ['2027-01-01', '2026-12-31', 'yesterday'], ['2027-01-01', '2027-01-03', 'in 2 days'], ['2027-01-03', '2027-01-01', '2 days ago'],
		['2026-12-01', '2026-12-31', 'in 30 days'], ['2027-03-13', '2027-03-14', 'tomorrow'], ['2027-03-14', '2027-03-16', 'in 2 days'], ['2027-11-07', '2027-11-08', 'tomorrow'], ['2027-10-30', '2027-11-29', 'in 30 days'], ['2027-01-01', '9999-12-31', 'in 2,912,077 days'],
	]) assert.equal(parts.inDays(today, day), expected, `${today} ${day}`);
	for (const [number, noun, many, expected] of [[0, 'record', undefined, '0 records'], [1, 'record', undefined, '1 record'], [2, 'record', undefined, '2 records'], [1234567, 'entry', 'entries', '1,234,567 entries'], [1, 'entry', 'entries', '1 entry']]) {
		assert.equal(parts.count(number, noun, many), expected);
	}
});

test('cells of the lists', () => {
	for (const [range, expected] of [[{min_weeks: 2, max_weeks: 4}, '2 to 4 weeks'], [{min_weeks: 3, max_weeks: 3}, '3 weeks'], [{min_weeks: 0, max_weeks: 5}, '0 to 5 weeks'], [{min_weeks: null, max_weeks: 5}, '5 weeks'],
		[{min_weeks: 1, max_weeks: 1}, '1 week'], [{min_weeks: 0, max_weeks: 1}, '0 to 1 week'], [{min_weeks: 1, max_weeks: 2}, '1 to 2 weeks'],
		[{min_weeks: 2, max_weeks: null}, '2 weeks'], [{min_weeks: null, max_weeks: null}, null], [undefined, null]]) assert.equal(columns.weeks(range), expected, JSON.stringify(range));
	const record = {id: 5, name: 'A', abbv: 'A', year: 2027, therapy_areas: ['X', 'Y'], abstract_due_date: '2027-02-01', abstract_due_date_status: 'estimated', late_breaking_due_date: '2027-03-01', late_breaking_due_date_status: 'confirmed'};
	const cell = (dataset, kind, row, options = {day: '2027-01-02'}) => columns.columnsOf(dataset, options).find(one => one.kind === kind).cell(row);
	for (const [place, expected] of [[{city: 'Bonn', country: 'Germany'}, ['Bonn, Germany', 2]], [{city: null, country: 'Germany'}, ['Germany', 1]], [{city: 'Bonn'}, ['Bonn', 1]], [{}, null]]) {
		const shown = cell('conferences', 'place', {record: place});
		assert.deepEqual([words(shown), all(shown, 'bdi').length], expected ?? ['', 0]);
	}
	// One cell has one fact: the date, how sure it is, how far it is, what it is for.
	const due = (day, fields, period = {from: day}) => {
		const row = {record: {...record, ...fields}, due: shownDeadline({...record, ...fields}, day, period)};
		return ['due', 'sure', 'days', 'of'].map(kind => words(cell('conferences', kind, row, {day}))).join(' | ');
	};
	for (const [day, fields, period, expected] of [
		['2027-01-02', {}, undefined, 'Mon 1 Feb 2027 | estimated | in 30 days | Abstracts'], ['2027-02-01', {}, undefined, 'Mon 1 Feb 2027 | estimated | today | Abstracts'],
		['2027-02-02', {}, undefined, 'Mon 1 Mar 2027 | confirmed | in 27 days | Late-breaking'], ['2027-03-02', {}, undefined, 'Mon 1 Mar 2027 | confirmed | yesterday | Late-breaking'],
		['2027-01-02', {}, {from: '2027-01-02', to: '~', confidences: ['confirmed']}, 'Mon 1 Mar 2027 | confirmed | in 58 days | Late-breaking'],
		['2027-04-02', {}, {from: '2027-04-02', to: '~', confidences: ['estimated']}, 'Mon 1 Feb 2027 | estimated | 60 days ago | Abstracts'],
		['2027-01-02', {late_breaking_due_date: null, late_breaking_due_date_status: 'not_found'}, {from: '2027-01-02', to: '~', confidences: ['not_found']}, 'No date | not found |  | Late-breaking'],
		['2027-02-02', {abstract_due_date: null, late_breaking_due_date: null}, undefined, ' |  |  | '],
	]) assert.equal(due(day, fields, period), expected, day);
	// Only what is due in less than 14 days has a color.
	for (const [day, expected] of [['2027-01-01', 'soft'], ['2027-01-02', 'urgent'], ['2027-01-15', 'urgent'], ['2027-01-16', 'soft']]) {
		const shown = columns.Days({today: day === '2027-01-01' ? '2027-01-02' : '2027-01-02', day});
		assert.equal(shown.props.class, expected, day);
	}
	const name = (record, marks) => ['short', 'full'].map(kind => words(cell('conferences', kind, {record}, {day: '2027-01-01', marks}))).join(' | ');
	assert.equal(name(record, new Map([[5, 'added']])), 'A 2027 added | ');
	assert.equal(name({...record, abbv: 'AB'}), 'AB 2027 | A');
	assert.equal(name({...record, abbv: null, year: null}), 'A | ');
	const journal = {name: 'J', abbv: 'Jn', publisher: 'P', publishing: {access: 'open', apc_usd: 0}, impact_factor: 1.5, timelines: {online_submit_to_accept: {min_weeks: 1, max_weeks: 2}}};
	assert.deepEqual(columns.columnsOf('journals', {}).map(({cell}) => words(cell({record: journal}))), ['J', 'Jn', 'P', 'open', '0', '1.5', '1 to 2 weeks']);
	// The line holds its deadline and its meeting where they are, from today on, and what is over is not on it.
	const line = (fields, today) => {
		const shown = columns.Line({record: {...record, ...fields}, due: shownDeadline({...record, ...fields}, today, {from: today}), today});
		return [all(shown, 'circle').map(({props}) => Math.round(props.cx)), all(shown, 'rect').map(({props}) => [Math.round(props.x), Math.round(props.width)])];
	};
	for (const [fields, today, expected] of [
		[{start_date: '2027-05-01', end_date: '2027-05-22'}, '2027-01-02', [[7], [[26, 5]]]], [{start_date: '2027-05-01'}, '2027-02-02', [[6], [[19, 3]]]],
		[{start_date: '2027-01-01'}, '2027-01-02', [[7], []]], [{}, '2027-04-01', [[], []]], [{start_date: '2030-01-01'}, '2027-04-01', [[], [[93, 3]]]],
	]) assert.deepEqual(line(fields, today), expected, JSON.stringify([fields, today]));
	const months = ['2026-12-31', '2027-01-01'].map(date => ({record, kind: 'abstract', date, confidence: 'copied'}));
	assert.deepEqual(all(columns.Deadlines({of: months, columns: columns.columnsOf('conferences', {day: '2026-12-31'})}), 'h3').map(words), ['December 2026 1', 'January 2027 1']);
	// A month has its whole number, however many of its deadlines are shown.
	const many = [...Array(3).fill(months[0]), ...Array(1200).fill(months[1])];
	for (const [most, rows, names] of [[1, [1], 'December 2026 3'], [3, [3], 'December 2026 3'], [50, [3, 47], 'December 2026 3, January 2027 1,200'], [5000, [3, 1200], 'December 2026 3, January 2027 1,200']]) {
		const sections = columns.Deadlines({of: many, most, columns: columns.columnsOf('conferences', {day: '2026-12-31', isPrinting: true})});
		assert.deepEqual([all(sections, 'h3').map(words).join(', '), sections.map(section => all(section, 'tr').length - 1)], [names, rows], `${most}`);
	}
	const both = [['abstract', '2027-02-01', 'estimated'], ['late_breaking', '2027-02-03', 'confirmed']].map(([kind, date, confidence]) => ({record: {...record, city: 'Bonn'}, kind, date, confidence}));
	assert.deepEqual(all(columns.Deadlines({of: both, columns: columns.columnsOf('conferences', {day: '2027-02-01', isPrinting: true})}), 'td').map(words),
		['A 2027', '', 'Mon 1 Feb 2027', 'estimated', 'today', 'Abstracts', '–', '', 'Bonn', 'X, Y', 'A 2027', '', 'Wed 3 Feb 2027', 'confirmed', 'in 2 days', 'Late-breaking', '–', '', 'Bonn', 'X, Y']);
	assert.equal(words(cell('conferences', 'meet', {record: {start_date: '2027-01-31', end_date: '2027-02-02'}})), 'Sun 31 Jan – Tue 2 Feb 2027');
	assert.equal(cell('conferences', 'meet', {record: {start_date: null, end_date: null}}), null);
});

test('a table has a cell for each value, and names the column by which it is sorted', () => {
	const cells = [['A', 'a'], ['B', 'b'], ['C']].map(([name, sort]) => ({name, sort, cell: row => row[name]}));
	const table = sorted => parts.Table({label: 'Rows', columns: cells, rows: [{A: 0, B: '0', C: null}, {A: '<b>', B: "it's"}], sorted});
	assert.deepEqual(all(table(), 'td').map(words), ['0', '0', '–', '<b>', "it's", '–']);
	const asked = [];
	for (const [by, descending, expected] of [['a', false, ['ascending', null, null]], ['a', true, ['descending', null, null]], ['b', true, [null, 'descending', null]]]) {
		const sorted = table({by, descending, onSort: by => asked.push(by)});
		assert.deepEqual(all(sorted, 'th').map(({props}) => props['aria-sort'] || null), expected, `${by} ${descending}`);
		for (const {props} of all(sorted, 'button')) props.onClick();
	}
	assert.deepEqual([asked.join(' '), all(table(), 'button')], ['a b a b a b', []]);
	// A newer server may have statuses that the page does not know.
	for (const [of, expected] of [['not_found', 'not found'], ['a_new_one', 'a_new_one'], [null, ''], [undefined, '']]) assert.equal(words(parts.Status({of})), expected);
});

test("a list's request has the filters of one value, and 100 characters at most", () => {
	const {requestOf} = question;
	const none = {q: '', year: '', country: '', therapy_area: ''};
	for (const [words, facets, expected] of [
		['', {}, {}], [' a ', {}, {}], ['ab', {}, {q: 'ab'}], [' 癌 ', {}, {}], ['', {country: ['Spain'], year: ['2027']}, {country: 'Spain', year: '2027'}], ['', {country: ['Spain', 'Japan'], area: ['Urology']}, {therapy_area: 'Urology'}],
		['mfk_abc', {}, {}], ['heart mfk_abc', {}, {q: 'heart'}], [' xMFK_abcx a', {}, {}],
		['🧬'.repeat(101), {region: ['Europe']}, {q: '🧬'.repeat(100)}], [`${'x'.repeat(99)}🧬y`, {country: []}, {q: `${'x'.repeat(99)}🧬`}],
	]) assert.deepEqual(requestOf({words, facets}), {...none, ...expected}, words);
});

test('the facts of a record', async context => {
	context.mock.timers.enable({apis: ['Date'], now: new Date('2027-01-01T17:00:00Z')});
	const {whole} = await load('views/record.js');
	const facts = (dataset, record) => all(whole(dataset, {id: 1, organizations: [], tags: [], updated_at: '2026-12-31T10:20:30Z', ...record}), 'div').slice(1).map(words);
	const conference = {therapy_areas: ['X'], formats: {oral: true, poster: false, encore: null}, start_date: '2027-05-29', end_date: '2027-05-31', start_date_status: 'confirmed',
		abstract_due_date: '2027-01-31', abstract_due_date_status: 'confirmed', late_breaking_due_date: '2027-03-02', late_breaking_due_date_status: 'estimated'};
	const [abstracts, late, meeting, ...about] = facts('conferences', conference);
	assert.match(abstracts, /^Abstracts due Sun 31 Jan 2027 in 30 days confirmed /);
	assert.match(late, /^Late-breaking abstracts due Tue 2 Mar 2027 in 60 days estimated/);
	assert.match(meeting, /^Meeting Sat 29 – Mon 31 May 2027 confirmed /);
	assert.deepEqual(about, ['Therapy areas X', 'Formats yes: Oral presentations no: Posters', 'Last change Thu 31 Dec 2026, 10:20:30 UTC']);
	assert.match(facts('conferences', {...conference, abstract_due_date: null, abstract_due_date_status: 'not_found'})[0], /^Abstracts due No date \S/);
	// A number of 0 is a fact. Null is none.
	const journal = {impact_factor: 0, impact_factor_year: 2025, citescore: 0, sjr: 0, h_index: 0, publishing: {apc_usd: 0, embargo_months: 0}, timelines: {accept_to_online: {min_weeks: 1, max_weeks: 1}}};
	assert.deepEqual(facts('journals', journal), ['Impact factor 0.0 (2025)', 'CiteScore 0.0', 'SCImago Journal Rank 0.0', 'h-index 0', 'Article fee 0 US dollars', 'Embargo 0 months',
		'Acceptance to publication online 1 week', 'Last change Thu 31 Dec 2026, 10:20:30 UTC']);
	// A link of a record leads to the list of the records that have it.
	const linked = {...conference, therapy_areas: ["Crohn's & Colitis"], tags: [{id: 1, type: 'Audience', name: 'Nurses'}],
		organizations: [{id: 1, name: 'Society', abbv: null, url: null}, {id: 2, name: 'Alliance', abbv: 'ALLY', url: 'https://example.org/?a=1&b=2'}]};
	const view = whole('conferences', {id: 1, updated_at: '2026-12-31T10:20:30Z', ...linked});
	assert.deepEqual(all(view, 'li').map(words).slice(2), ['Society', 'Alliance (ALLY)', 'Audience: Nurses']);
	const [area, website, tag] = all(view, 'a').map(({props}) => props.href);
	for (const [name, href] of [['area', area], ['tag', tag]]) {
		assert.deepEqual(question.parse(href).facets, {[name]: FACETS.conferences.find(facet => facet.name === name).valuesOf(linked)});
	}
	assert.equal(website, 'https://example.org/?a=1&b=2');
	const none = {impact_factor: null, impact_factor_year: 2025, citescore: null, sjr: null, h_index: null, publishing: {apc_usd: null, embargo_months: null}, timelines: {}};
	assert.deepEqual(facts('journals', none), ['Last change Thu 31 Dec 2026, 10:20:30 UTC']);
});

test('only web addresses become links', () => {
	for (const [href, isLink] of [['https://example.org', true], ['HTTP://example.org', true], ['javascript:alert(1)', false], ['xhttps://example.org', false], ['//example.org', false], ['data:text/html,https://', false], ['', false], [null, false]]) {
		const links = all(parts.Out({href, children: 'text'}), 'a');
		assert.deepEqual(links.map(({props}) => [props.href, props.rel, props.target]), isLink ? [[href, 'noreferrer noopener', '_blank']] : [], href);
		assert.equal(words(parts.Out({href, children: 'text'})), 'text');
	}
	assert.equal(words(parts.Out({href: 'javascript:alert(1)'})), 'javascript:alert(1)');
});

test('changes and problems in words', () => {
	const fields = [{field: 'abstract_due_date_status', from: 'estimated', to: 'not_found'}, {field: 'formats.oral', from: '', to: 'true'}, {field: 'city', from: 'check', to: ''}];
	assert.deepEqual(all(parts.Fields({of: fields}), 'div').map(words), ['abstract due date status was estimated → is now not found', 'formats oral added is now true', 'city was check removed']);
	assert.equal(parts.Fields({of: []}), false);
	const problem = {status: 429, title: 'Too Many', detail: 'Wait `7` s.', type: 'https://h/docs/errors/rate_limited', request_id: 'r1'};
	const told = after => words(parts.Problem({of: {problem, headers: new Headers(after && {'Retry-After': after})}}));
	assert.equal(told('1'), '429 Too Many Wait 7 s. Wait 1 second. Code rate_limited, request r1');
	assert.equal(told('30'), '429 Too Many Wait 7 s. Wait 30 seconds. Code rate_limited, request r1');
	assert.equal(told(), '429 Too Many Wait 7 s. Code rate_limited, request r1');
	// A gateway's answer is no problem of the API.
	const silent = 'The server gave no answer that can be read. Check that it runs, and try again.';
	for (const [problem, status, expected] of [[{title: 'No answer'}, undefined, `No answer ${silent}`], [{message: 'Forbidden'}, 403, `403 ${silent}`], [{detail: 7}, 500, '500 7'], ['Forbidden', 403, `403 ${silent}`]]) {
		assert.equal(words(parts.Problem({of: {problem, status}})), expected);
	}
	assert.deepEqual(all(parts.Words({of: 'a `b` c `d`'}), 'code').map(words), ['b', 'd']);
	const change = (kind, before, after) => words(Change({dataset: 'journals', of: {id: 3, kind, before, after, fields: []}}));
	const [one, other] = [{name: 'A', year: 2026}, {name: 'B', year: 2027}];
	assert.equal(change('added', null, other), 'addedB 2027 It came into the license.');
	assert.equal(change('removed', one, null), 'removedA 2026 It was removed or left the license.');
	// Journals have no year.
	assert.equal(change('removed', {name: 'A'}, null), 'removedA It was removed or left the license.');
	assert.equal(change('added', null, {name: 'B'}), 'addedB It came into the license.');
});

test('requests and their failures', async () => {
	const asked = [];
	const answers = list => { globalThis.fetch = async (url, options) => { asked.push([options.method ?? 'GET', url, options.headers.Authorization]); return list.shift()(); }; };
	const json = (status, body) => () => new Response(JSON.stringify(body), {status, headers: {'Retry-After': '3'}});
	answers([json(200, {data: 1})]);
	const good = await api.ask('k', 'journals', {q: "o'n"});
	assert.deepEqual([good.status, good.data, good.problem, good.url, good.method, good.path], [200, {data: 1}, undefined, ROOT + 'journals?q=o%27n', 'GET', 'journals']);
	// A refused HEAD is requested again, to get a reason. A HEAD that succeeds is not.
	answers([() => new Response(null, {status: 403}), json(403, {detail: 'no'}), () => new Response(null, {headers: {'X-Sync-Token': 't'}})]);
	const refused = await api.ask('k', 'exports/journals', {format: 'csv'}, 'HEAD'), head = await api.ask('', 'exports/journals', {}, 'HEAD');
	assert.deepEqual([refused.status, refused.problem.detail, refused.data, refused.method], [403, 'no', undefined, 'HEAD']);
	assert.deepEqual([head.status, head.data, head.headers.get('x-sync-token')], [200, null, 't']);
	for (const body of [{message: 'Forbidden'}, null, 'Forbidden']) {
		answers([json(403, body)]);
		const {status, problem, data} = await api.ask('k', 'journals');
		assert.deepEqual([status, problem, data], [403, body ?? {}, undefined]);
	}
	for (const broken of [() => { throw new TypeError('network'); }, () => new Response('no JSON'), () => new Response('<html>', {status: 502})]) {
		answers([broken]);
		const {status, problem, data} = await api.ask('k', 'journals');
		assert.deepEqual([status, problem.title, data], [undefined, 'No answer', undefined]);
	}
	// A redirect is not followed. The browser hides its status and its target.
	const options = [];
	globalThis.fetch = async (url, given) => (options.push(given.redirect), {type: 'opaqueredirect', status: 0, ok: false});
	for (const method of ['GET', 'HEAD']) {
		const {status, problem, data} = await api.ask('k', 'journals', {}, method);
		assert.deepEqual([status, problem.title, data], [undefined, 'Redirect', undefined]);
		assert.match(problem.detail, /redirects to another address/);
	}
	await assert.rejects(api.requester('k')('exports/journals'), /redirects to another address/);
	assert.deepEqual(options, ['manual', 'manual', 'manual']);
	assert.deepEqual(asked.slice(0, 4), [
		['GET', ROOT + 'journals?q=o%27n', 'Bearer k'], ['HEAD', ROOT + 'exports/journals?format=csv', 'Bearer k'], ['GET', ROOT + 'exports/journals?format=csv', 'Bearer k'], ['HEAD', ROOT + 'exports/journals', undefined]]);
});

test('a key is taken only if the server knows it', async () => {
	const {isAccepted} = await load('views/key.js');
	// 403: the key is right, but not for this dataset or address. 429 and 503 say nothing of a key.
	for (const [status, expected] of [[200, true], [403, true], [401, false], [429, false], [503, false], [500, false], [404, false], [undefined, false]]) assert.equal(isAccepted({status}), expected, `${status}`);
});

test('a copy follows the feed until it is stopped', async context => {
	const {Copies} = await load('copies.js');
	const records = Array.from({length: 2500}, (_, at) => ({id: at + 1, name: `Congress ${at}`, country: 'Japan', therapy_areas: [], organizations: [], tags: []}));
	const text = list => list.map(record => JSON.stringify(record) + '\n').join('');
	const headers = {'X-Sync-Token': 't0', 'X-Record-Count': '2500', 'Content-Type': 'application/jsonl'};
	let isStopped = false;
	const gate = () => { let open; return [new Promise(resolve => { open = resolve; }), open]; };
	const [first, release] = gate(), [second, releaseSecond] = gate();
	globalThis.fetch = async (url, {signal}) => {
		if (url.includes('/exports/')) return new Response(text(records), {headers});
		if (url.includes('since=t0')) return first;
		if (url.includes('since=t1')) return second;
		await new Promise((_, reject) => signal.addEventListener('abort', () => { isStopped = true; reject(signal.reason); }));
	};
	const copies = new Copies('k'), kept = copies.of('conferences'), seen = [], countChanges = () => kept.log.since(kept.log.opened, kept.copy.records, true).length;
	context.after(() => copies.stop());
	const reached = what => new Promise(resolve => {
		const check = () => what() && resolve();
		copies.subscribe(check);
		check();
	});
	copies.subscribe((_, changes) => seen.push(...changes.map(({kind, id}) => `${kind} ${id}`)));
	assert.equal(copies.of('conferences'), kept, 'one copy of each dataset');
	const sizeOnceReady = new Promise(resolve => {
		const look = () => kept.isReady ? resolve(kept.index.size) : setImmediate(look);
		look();
	});
	await reached(() => kept.state.name === 'current');
	assert.deepEqual([kept.isReady, kept.index.size, countChanges()], [true, 2500, 0]);
	assert.equal(await sizeOnceReady, 2500, 'it is ready once the index has all records');
	const changed = [{...records[0], name: 'Renamed'}, {id: 2, deleted: true}];
	release(new Response(JSON.stringify({data: changed, has_more: true, next_sync_token: 't1'})));
	await reached(() => countChanges() === 2);
	assert.deepEqual([seen, kept.index.size, kept.copy.list()], [['changed 1', 'removed 2'], 2499, [changed[0], ...records.slice(2)]]);
	releaseSecond(new Response(JSON.stringify({data: [{id: 3, deleted: true}], has_more: true, next_sync_token: 't2'})));
	await reached(() => kept.follower.token === 't2' && countChanges() === 3);
	await new Promise(resolve => setTimeout(resolve));
	copies.stop();
	await new Promise(resolve => setTimeout(resolve));
	assert.equal(isStopped, true, 'no request stays open');
});

test('a copy sends a request at once when the network fails and when it returns', async context => {
	// No pause and no limit ends by itself.
	context.mock.timers.enable({apis: ['setTimeout']});
	const {Copies} = await load('copies.js');
	const asked = [];
	let isLost = false, changed = () => {};
	globalThis.fetch = (url, {signal}) => {
		if (url.includes('/exports/')) return Promise.resolve(new Response('', {headers: {'X-Sync-Token': 't0', 'X-Record-Count': '0'}}));
		asked.push(new URL(url).searchParams.get('wait'));
		changed();
		if (isLost) return Promise.reject(new TypeError('network'));
		if (asked.at(-1) === null) return Promise.resolve(new Response(JSON.stringify({data: [], has_more: false, next_sync_token: 't0'})));
		return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
	};
	const copies = new Copies('k'), kept = copies.of('conferences');
	context.after(() => copies.stop());
	const reached = what => new Promise(resolve => {
		changed = () => what() && resolve();
		copies.subscribe(() => changed());
		changed();
	});
	await reached(() => asked.length === 1);
	assert.deepEqual([asked, kept.state.name], [['45'], 'current']);
	isLost = true;
	page.dispatchEvent(new Event('offline'));
	await reached(() => kept.state.name === 'offline');
	assert.deepEqual(asked.slice(0, 2), ['45', null]);
	isLost = false;
	page.dispatchEvent(new Event('online'));
	await reached(() => kept.state.name === 'current');
	const count = asked.length;
	copies.stop();
	page.dispatchEvent(new Event('online'));
	await new Promise(resolve => setImmediate(resolve));
	assert.equal(asked.length, count, 'a copy that was stopped');
});

test('a request ends after 75 seconds without an answer, and not before', async context => {
	context.mock.timers.enable({apis: ['setTimeout']});
	const {Copies} = await load('copies.js');
	globalThis.fetch = (url, {signal}) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
	const copies = new Copies('k');
	context.after(() => copies.stop());
	let answer = null;
	copies.of('journals').ask('journals/changes', {}, new AbortController().signal).then(given => { answer = given; });
	for (const [ms, expected] of [[74999, undefined], [1, 'No answer']]) {
		context.mock.timers.tick(ms);
		await new Promise(resolve => setImmediate(resolve));
		assert.equal(answer?.problem.title, expected, `${ms}`);
	}
});

test('a refused export keeps its status, its reason and the pause that the server names', async context => {
	const {Copies} = await load('copies.js');
	globalThis.fetch = async () => new Response('{"detail":"slow down"}', {status: 429, headers: {'Retry-After': '7'}});
	const copies = new Copies('k');
	context.after(() => copies.stop());
	const {status, headers, problem} = await copies.of('journals').load(new AbortController().signal, () => {});
	assert.deepEqual([status, headers?.get('retry-after'), problem.detail], [429, '7', 'slow down']);
});

/** A store of rows, with transactions that take their time. Each either has all of its changes or none. */
class Rows {
	constructor() {
		[this.rows, this.turn, this.isBroken] = [new Map(), Promise.resolve(), false];
	}

	/** The rows whose keys begin so, in the order of their keys. */
	list(...begin) {
		return [...this.rows].map(([key, value]) => [JSON.parse(key), value]).filter(([key]) => begin.every((part, at) => key[at] === part))
			.sort(([one], [other]) => one.at(-1) - other.at(-1)).map(([, value]) => value);
	}

	own(mode, use) {
		return this.turn = this.turn.catch(() => {}).then(async () => {
			const before = new Map(this.rows);
			// A request is done in its turn, and succeeds a moment later.
			const request = result => {
				const made = {result, onsuccess() {}};
				setImmediate(() => made.onsuccess());
				return made;
			};
			const isWithin = (key, {from}) => from.every((part, at) => JSON.parse(key)[at] === part);
			await use({
				get: key => request(this.rows.get(JSON.stringify(key))), put: (value, key) => request(this.rows.set(JSON.stringify(key), value)),
				delete: key => request([...this.rows.keys()].filter(one => Array.isArray(key) ? one === JSON.stringify(key) : isWithin(one, key)).forEach(one => this.rows.delete(one))),
			});
			if (this.isBroken) {
				this.rows = before;
				throw new Error('full');
			}
		});
	}

	async remove() {
		this.rows.clear();
	}

	/** The copy as another tab would read it. */
	read({fromRows}) {
		return fromRows(this.rows.get('["d","head"]'), this.list('d', 'records'), this.list('d', 'notes'));
	}
}

/** Numbers that look random, the same each time. */
function randomOf(seed) {
	return below => {
		seed = Math.imul(seed ^ seed >>> 15, 1 | seed) + 0x6D2B79F5 | 0;
		return ((seed ^ seed >>> 14) >>> 0) % below;
	};
}

test('whichever tab writes, rows that are read become the records of the server', async context => {
	context.mock.timers.enable({apis: ['Date'], now: Date.UTC(2027, 0, 1)});
	globalThis.IDBKeyRange = {bound: (from, to) => ({from, to})};
	const {Saver} = await load('keep.js'), kept = await load('model/kept.js'), {Copy} = await load('model/copy.js'), {ChangeLog} = await load('model/changes.js');
	let reads = 0, writes = 0;
	for (let seed = 1; seed <= 40; seed++) {
		const random = randomOf(seed), server = new Map(), history = [], rows = new Rows();
		const edit = () => {
			const id = 1 + random(1200), after = random(4) ? {id, name: `${history.length}`, updated_at: new Date().toISOString()} : null;
			after ? server.set(id, after) : server.delete(id);
			history.push(id);
		};
		/** The changes of a copy since its token, some of them or all. */
		const follow = (copy, token, most) => {
			const ids = history.slice(token, token + most);
			return [ids.map(id => copy.apply(server.get(id) ?? {id, deleted: true})).filter(Boolean), token + ids.length];
		};
		const check = async () => {
			await rows.turn.catch(() => {});
			const read = rows.read(kept);
			if (!rows.rows.size) return;
			assert.ok(read, `seed ${seed}: the rows are a copy`);
			const copy = new Copy('d');
			copy.load(read.records);
			follow(copy, +read.token, Infinity);
			assert.equal(JSON.stringify(copy.list()), JSON.stringify([...server.values()].sort((one, other) => one.id - other.id)), `seed ${seed}: the rows lead to the server's records`);
			reads++;
		};
		const open = () => {
			const read = rows.read(kept), tab = {dataset: 'd', copy: new Copy('d'), log: new ChangeLog(read ?? {}), follower: {token: read?.token ?? `${history.length}`, isStopped: false}, asOf: Date.now(), tell() {}};
			tab.copy.load(read?.records ?? [...server.values()]);
			tab.saver = new Saver(rows, tab, read);
			return tab;
		};
		for (let count = 0; count < 300; count++) edit();
		const tabs = [open()];
		for (let step = 0; step < 80; step++) {
			const tab = tabs[random(tabs.length)];
			switch (random(8)) {
				case 0: if (tabs.length < 3) { await rows.turn.catch(() => {}); tabs.push(open()); } break;
				case 1: if (tabs.length > 1) tabs.splice(random(tabs.length), 1)[0].follower.isStopped = true; break;
				case 2: context.mock.timers.tick(random(2) ? 1000 : 200000); break;
				case 3: await check(); break;
				case 4: for (let count = random(5); count >= 0; count--) edit(); break;
				case 5: await new Promise(resolve => setImmediate(resolve)); break;
				default: {
					const [changes, token] = follow(tab.copy, +tab.follower.token, 1 + random(6)), {revision} = tab.saver;
					tab.follower.token = `${token}`;
					tab.log.add(changes);
					tab.saver.change(changes);
					tab.asOf = Date.now();
					// It is written meanwhile, unless something else comes first.
					if (random(2)) tab.saver.write().then(() => { writes += tab.saver.revision !== revision; });
				}
			}
		}
		await check();
	}
	assert.ok(reads > 300 && writes > 200, `${reads} copies were read, ${writes} writes succeeded`);
});

test('a copy that does not fit is removed, once, and reported', async () => {
	const {Saver} = await load('keep.js'), {ChangeLog} = await load('model/changes.js');
	const rows = new Rows(), told = [], kept = {dataset: 'd', copy: {records: new Map([[1, {id: 1}]])}, log: new ChangeLog(), follower: {token: 't', isStopped: false}, asOf: 1,
		tell(news) { Object.assign(kept, news); told.push(news); }};
	const saver = new Saver(rows, kept);
	await saver.write();
	assert.equal(JSON.parse(rows.list('d', 'records')[0])[0].id, 1);
	rows.isBroken = true;
	await saver.write();
	assert.deepEqual([told, rows.rows.size], [[{isFull: true}], 0]);
	saver.current();
	assert.equal(saver.timer, null, 'it does not try again');
});

test('a page and its scripts come from one place, and only the page waits for a server that is away', async () => {
	const handlers = {}, scope = 'http://127.0.0.1/', timers = [];
	let server;
	const answers = {ok: () => Promise.resolve({status: 200, from: 'server'}), broken: () => Promise.reject(new TypeError('network')), away: () => Promise.resolve({status: 502}),
		silent: ({signal}) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))};
	vm.runInNewContext(readFileSync(new URL('worker.js', PAGE), 'utf8').replace(/FILES = \[.*?\]/, "FILES = ['', 'app.js', 'keep.js']"), {
		self: {registration: {scope}, addEventListener: (name, handle) => { handlers[name] = handle; }}, URL, AbortController, caches: {match: async () => ({from: 'here'})},
		setTimeout: run => timers.push(run), clearTimeout() {}, fetch: (_, options) => answers[server](options)});
	for (const [file, how, expected] of [
		['', 'ok', 'server'], ['app.js', 'ok', 'server'], ['app.js', 'silent', 'nowhere'], ['app.js', 'broken', 'here'], ['keep.js', 'ok', 'server'],
		['', 'silent', 'here'], ['app.js', 'ok', 'here'], ['keep.js', 'silent', 'here'], ['', 'ok', 'server'], ['app.js', 'ok', 'server'],
		['', 'away', 'here'], ['app.js', 'ok', 'here'], ['', 'broken', 'here'], ['app.js', 'ok', 'here'],
	]) {
		server = how;
		const answer = new Promise(resolve => handlers.fetch({request: {method: 'GET', mode: file ? 'cors' : 'navigate', url: scope + file}, respondWith: resolve}));
		// The time of each limit is over.
		timers.splice(0).forEach(run => run());
		const {from} = await Promise.race([answer, new Promise(resolve => setImmediate(resolve, {from: 'nowhere'}))]);
		assert.equal(from, expected, `${file} ${how}`);
	}
});

test('the key stays in the tab only if that is possible', async () => {
	const {clearTab, keepKey, keptKey} = await load('session.js');
	const stored = new Map();
	globalThis.sessionStorage = {getItem: name => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value), removeItem: name => stored.delete(name)};
	assert.equal(keptKey(), '');
	keepKey('mfk_x');
	assert.equal(keptKey(), 'mfk_x');
	keepKey('');
	assert.deepEqual([keptKey(), stored.size], ['', 0]);
	// Forgetting a key removes everything of the page, and nothing else.
	globalThis.sessionStorage = Object.assign(Object.create({removeItem(name) { delete this[name]; }}), {'medfeed-key': 'k', 'medfeed-shortlist': '[1]', other: 'x'});
	clearTab();
	assert.deepEqual({...globalThis.sessionStorage}, {other: 'x'});
	// A browser without storage throws at the first access to it.
	Object.defineProperty(globalThis, 'sessionStorage', {get() { throw new Error('denied'); }});
	keepKey('mfk_x');
	keepKey('');
	assert.equal(keptKey(), '');
});

test('only a page over HTTPS or from this machine keeps something', async () => {
	const {canKeep} = await load('keep.js');
	for (const [protocol, hostname, isSecureContext, expected] of [
		['https:', 'medfeed.example.org', true, true], ['http:', 'localhost', true, true], ['http:', '127.0.0.1', true, true], ['http:', '127.8.0.2', true, true], ['http:', '[::1]', true, true],
		['http:', 'medfeed.example.org', false, false], ['http:', '192.168.0.2', false, false], ['https:', 'medfeed.example.org', false, false],
		// A browser can be set to trust an address. The other names can belong to other machines.
		['http:', 'medfeed.example.org', true, false], ['http:', '127.0.0.1.example.org', true, false], ['http:', 'localhost.example.org', true, false], ['file:', '', true, false],
	]) assert.equal(canKeep({isSecureContext, indexedDB: {}, location: {protocol, hostname}}), expected, `${protocol}//${hostname} ${isSecureContext}`);
	assert.equal(canKeep({isSecureContext: true, location: {protocol: 'https:', hostname: 'h'}}), false, 'a browser without a database');
	assert.equal(canKeep(), false);
});

test('kept rows that cannot be opened are removed only if their form is unusable', async context => {
	const {openKeep} = await load('keep.js'), removed = [];
	const request = (use, name) => {
		const made = {};
		setImmediate(() => name ? (made.error = new DOMException('', name), made.onerror()) : (made.result = use(), made.onsuccess()));
		return made;
	};
	Object.assign(globalThis, {isSecureContext: true, location: {...location, protocol: 'http:', hostname: '127.0.0.1'}});
	context.after(() => Object.assign(globalThis, {isSecureContext: undefined, indexedDB: undefined}));
	for (const [opening, transaction, isRemoved] of [
		['VersionError', '', true], ['UnknownError', '', false], ['QuotaExceededError', '', false], ['InvalidStateError', '', false],
		['', 'NotFoundError', true], ['', 'UnknownError', false], ['', 'InvalidStateError', false], ['', 'AbortError', false],
	]) {
		removed.length = 0;
		let isClosed = Boolean(opening);
		const db = {transaction() { throw new DOMException('', transaction); }, close() { isClosed = true; }};
		globalThis.indexedDB = {open: () => request(() => db, opening), deleteDatabase: name => request(() => removed.push(name))};
		assert.deepEqual([await openKeep(), isClosed, removed.length > 0], [null, true, isRemoved], opening || transaction);
	}
});

test('the shortlist is in the tab, and in memory where there is no storage', async () => {
	const {clearLists, isStarred, loadLists, setStars, starsOf, subscribe} = await load('shortlist.js');
	const stored = new Map();
	Object.defineProperty(globalThis, 'sessionStorage', {configurable: true, value: {getItem: name => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value), removeItem: name => stored.delete(name)}});
	let told = 0;
	const end = subscribe(() => { told++; });
	setStars('conferences', [12, 40, 12]);
	assert.deepEqual([starsOf('conferences'), starsOf('journals'), isStarred('conferences', 40), isStarred('journals', 40), told], [[12, 40], [], true, false, 1]);
	assert.deepEqual([...stored.keys()], ['medfeed-lists']);
	for (const [text, expected] of [['{"conferences":[7,8],"journals":[9]}', [[7, 8], [9]]], ['{"conferences":[1,"2",-3,4.5,null,1e99,1],"journals":{}}', [[1], []]], ['[]', [[], []]], ['null', [[], []]], ['7', [[], []]], ['{', [[], []]], ['{"__proto__":{"conferences":[5]}}', [[], []]]]) {
		stored.set('medfeed-lists', text);
		loadLists();
		assert.deepEqual([starsOf('conferences'), starsOf('journals')], expected, text);
	}
	setStars('journals', [5]);
	clearLists();
	assert.deepEqual([starsOf('journals'), stored.size], [[], 0]);
	end();
	const before = told;
	Object.defineProperty(globalThis, 'sessionStorage', {configurable: true, get() { throw new Error('denied'); }});
	setStars('journals', [6]);
	assert.deepEqual([starsOf('journals'), told], [[6], before]);
	clearLists();
	assert.deepEqual(starsOf('journals'), []);
});

/** What was put of the lists: the ids of the first one. */
const idsOf = ([name, {lists: [list]}]) => [name, {conferences: list.conferences.map(({id}) => id), journals: list.journals.map(({id}) => id)}];

test('a shortlist that is kept on the computer has the stars of the tab too, and leaves the tab', async () => {
	const {clearLists, keepLists, moveLists, setStars, starsOf, takeLists} = await load('shortlist.js'), stored = new Map();
	Object.defineProperty(globalThis, 'sessionStorage', {configurable: true, value: {getItem: name => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value), removeItem: name => stored.delete(name)}});
	for (const [kept, own, expected] of [
		[undefined, [], []], [undefined, [7, 8], [7, 8]], [[1, 2], [], [1, 2]], [[1, 2], [2, 7], [1, 2, 7]], [[], [7], [7]],
	]) {
		setStars('conferences', own);
		const puts = [], keep = {get: () => kept && {conferences: kept, journals: [5]}, put: (name, value) => puts.push([name, value])};
		moveLists(keep);
		assert.deepEqual([starsOf('conferences'), starsOf('journals'), stored.size], [expected, kept ? [5] : [], 0], JSON.stringify([kept, own]));
		assert.deepEqual(puts.map(idsOf), own.length ? [['lists', {conferences: expected, journals: kept ? [5] : []}]] : [], 'nothing new is not written');
		takeLists({conferences: [3], journals: []});
		setStars('conferences', [3, 4]);
		assert.deepEqual([idsOf(puts.at(-1)), stored.size], [['lists', {conferences: [3, 4], journals: []}], 0]);
		keepLists(null);
		clearLists();
	}
});

test('rows that come, go or change places are counted', async () => {
	const {moves} = await load('views/held.js');
	for (const [before, after, expected] of [[[], [], 0], [[1, 2], [1, 2], 0], [[1, 2], [2, 1], 1], [[1, 2], [1, 2, 3], 1], [[1, 2, 3], [4, 1, 2], 2], [[1], [], 1], [['5 abstract'], ['5 late_breaking'], 2]]) assert.equal(moves(before, after), expected, JSON.stringify([before, after]));
});

test('the months of a year, and the choice that a period is', async () => {
	const {periodName} = await load('views/year.js'), {monthsFrom} = await load('model/deadlines.js');
	const months = monthsFrom('2027-11-30');
	assert.deepEqual([months.length, months[0], months[1], months[3], months[11]], [12, {month: '2027-11', from: '2027-11-30', to: '2027-11-30'}, {month: '2027-12', from: '2027-12-01', to: '2027-12-31'},
		{month: '2028-02', from: '2028-02-01', to: '2028-02-29'}, {month: '2028-10', from: '2028-10-01', to: '2028-10-31'}]);
	for (const [within, due_from, due_to, expected] of [[null, undefined, undefined, ''], [30, undefined, undefined, 30], [45, undefined, undefined, null], [null, '2028-02-01', '2028-02-29', '2028-02'], [null, '2028-02-01', '2028-02-28', null],
		[null, '2027-11-30', '2027-11-30', '2027-11'], [60, '2028-02-01', undefined, null], [null, undefined, '2028-02-29', null]]) assert.equal(periodName({within, ranges: {due_from, due_to}}, '2027-11-30'), expected, `${within} ${due_from} ${due_to}`);
});

test('of records side by side, the earliest date is known', async () => {
	const {compare} = await load('views/record.js');
	const conference = (start_date, abstract_due_date) => ({therapy_areas: [], formats: {}, organizations: [], tags: [], updated_at: '2026-12-31T10:20:30Z', country: 'Spain', start_date, start_date_status: 'check', abstract_due_date, abstract_due_date_status: 'check', late_breaking_due_date_status: 'not_found'});
	for (const [records, expected] of [
		[[['2027-05-01', '2027-01-01'], ['2027-04-01', '2027-02-01']], [0, 1]], [[['2027-05-01', null], ['2027-05-01', '2027-02-01']], [-1, -1]], [[['2027-05-01', '2027-02-02'], ['2027-06-01', '2027-02-01'], ['2027-07-01', null]], [1, 0]],
		[[['2027-05-01', '2027-02-01'], ['2027-06-01', '2027-02-01'], ['2027-07-01', '2027-03-01']], [-1, 0]],
	]) {
		const facts = compare('conferences', records.map(one => conference(...one)));
		assert.deepEqual(['Abstracts due', 'Meeting'].map(term => facts.find(one => one.term === term).first), expected, JSON.stringify(records));
	}
});

test('records side by side differ in a fact, or do not', async () => {
	const {compare} = await load('views/record.js');
	const conference = {therapy_areas: ['B', 'A'], formats: {oral: true}, organizations: [], tags: [{id: 1, type: 'T', name: 'x'}, {id: 2, type: 'T', name: 'y'}], updated_at: '2026-12-31T10:20:30Z', country: 'Spain',
		start_date: '2027-05-29', end_date: '2027-05-31', start_date_status: 'confirmed', abstract_due_date: null, abstract_due_date_status: 'not_found', late_breaking_due_date_status: 'not_found'};
	const differing = (dataset, record, fields) => compare(dataset, [record, {...record, ...fields}]).filter(({differs}) => differs).map(({term}) => term).join();
	for (const [fields, expected] of [
		[{}, ''], [{therapy_areas: ['A', 'B'], tags: [...conference.tags].reverse(), updated_at: '2027-01-01T00:00:00Z', url: 'https://example.org'}, ''], [{therapy_areas: ['A']}, 'Therapy areas'], [{start_date_status: 'copied'}, 'Meeting'],
		[{end_date: '2027-06-01'}, 'Meeting'], [{abstract_due_date: '2027-01-01'}, 'Abstracts due'], [{country: null}, 'Place'], [{city: 'Bonn'}, 'Place'], [{formats: {oral: false}}, 'Formats'], [{organizations: [{id: 1, name: 'O'}]}, 'Organizations'], [{tags: []}, 'Tags'],
	]) assert.equal(differing('conferences', conference, fields), expected, JSON.stringify(fields));
	const journal = {publishing: {apc_usd: 0}, timelines: {}, organizations: [], tags: [], updated_at: '2026-12-31T10:20:30Z', impact_factor: 2.5, publisher: 'P'};
	for (const [fields, expected] of [
		[{}, ''], [{impact_factor: 2.50}, ''], [{impact_factor: null}, 'Impact factor'], [{publishing: {apc_usd: null}}, 'Article fee'], [{publishing: {apc_usd: 1e15}}, 'Article fee'], [{publisher: null}, 'Publisher'],
		[{timelines: {online_submit_to_accept: {min_weeks: 2, max_weeks: 4}}}, 'Online submission to acceptance'], [{issn_print: '1234-5678'}, ''],
	]) assert.equal(differing('journals', journal, fields), expected, JSON.stringify(fields));
	// A fact that no record has takes no row. Four records have one value each.
	const four = compare('journals', [journal, journal, {...journal, h_index: 0}, journal]);
	assert.deepEqual(four.map(({term}) => term), ['Publisher', 'Impact factor', 'h-index', 'Article fee']);
	assert.deepEqual(four[2].shown, [null, null, 0, null]);
});

test('the answer of the server about a demo', async () => {
	const {readDemo} = await load('views/demo.js');
	assert.equal(await readDemo(), null, 'elsewhere');
	globalThis.demoPath = 'demo.json';
	for (const [answer, expected] of [
		[() => new Response('{"licenses":[{"name":"a"}],"edits":[]}'), {licenses: [{name: 'a'}], edits: []}], [() => new Response('{"detail":"gone"}', {status: 404}), {licenses: [], edits: [], lost: true, why: 'gone'}],
		[() => { throw new Error('no server'); }, {licenses: [], edits: [], lost: true}], [() => new Response('<html>'), {licenses: [], edits: [], lost: true}],
	]) {
		globalThis.fetch = async () => answer();
		assert.deepEqual(await readDemo(), expected);
	}
});

test('a change is shown beside the first edit that it can come from', async () => {
	const {Rows} = await load('views/demo.js');
	const rows = new Rows(['wide', 'narrow']), edits = [{number: 1, ids: [7]}];
	const edit = (number, now, ...ids) => { edits.push({number, ids}); rows.turn(edits, now); };
	const arrives = (side, id, at) => rows.waiting.push({side, change: {id, before: {}, after: {}}, at});
	const shown = () => rows.rows.map(({edit, sides}) => [edit?.number, ...sides.map(changes => changes.map(({id}) => id).join())]);
	rows.turn(edits, 0);
	assert.deepEqual(shown(), [], 'edits of before the page was opened');
	edit(2, 1000, 7);
	edit(3, 2000, 7, 8);
	arrives(0, 7, 2100);
	arrives(1, 8, 2200);
	rows.turn(edits, 2300);
	assert.deepEqual(shown(), [[3, '', '8'], [2, '7', '']]);
	// Three seconds after an edit, a change is of another one.
	arrives(1, 7, 4000);
	arrives(0, 9, 4000);
	rows.turn(edits, 7000);
	assert.deepEqual(shown(), [[3, '', '8,7'], [2, '7', '']], 'a change waits for the words of its edit');
	rows.turn(edits, 7001);
	assert.deepEqual(shown(), [[undefined, '9', ''], [3, '', '8,7'], [2, '7', '']], 'an edit of somebody else');
});
