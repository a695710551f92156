const record = (id, name = 'x') => ({id, name});
const page = (data, next_sync_token, has_more = false) => ({status: 200, data: {data, has_more, next_sync_token}});
const problem = (status, headers = {}) => ({status, headers: new Headers(headers), problem: {status, detail: `a ${status}`}});
const LOST = {problem: {title: 'No answer'}};
const END = problem(401);

/** Runs a follower against answers, given in order, until the last one. Returns what it did. */
async function run({follower: {Follower, describe}, copy: {Copy}}, {loads = [{token: 't0', records: [record(1)]}], answers = [END], stopAt, stopInLoad, token, before = [], answersAnyway}) {
	const seen = {asked: [], states: [], told: [], changes: [], pauses: [], awake: 0};
	const copy = new Copy('conferences');
	copy.load(before);
	const follower = new Follower({
		dataset: 'conferences', copy, token, awake: async () => { seen.awake++; },
		ask: async (path, params, signal) => {
			seen.asked.push([path, params.since, params.wait ?? 0].join(' '));
			if (seen.asked.length === stopAt) follower.stop();
			await null;
			return signal.aborted && !answersAnyway ? LOST : answers.shift();
		},
		load: async (signal, onProgress) => {
			const loaded = loads.shift();
			if (loaded instanceof Error) throw loaded;
			onProgress(loaded.records?.length ?? 0, 1);
			if (stopInLoad) follower.stop();
			return loaded;
		},
		onChanges: (changes, {loaded}) => seen.changes.push([loaded, ...changes.map(change => `${change.kind} ${change.id}`)].join(' ')),
		onState: state => {
			if (seen.states.at(-1) !== state.name) seen.states.push(state.name);
			seen.told.push(describe(state));
		},
		pause: async ms => seen.pauses.push(ms),
	});
	await follower.run();
	return {...seen, ids: copy.list().map(({id}) => id).join(' '), follower};
}

export const cases = [
	['it loads, then follows', async (model, is) => {
		const done = await run(model, {answers: [page([], 't0'), page([record(2), record(3)], 't1', true), page([{id: 1, deleted: true}, {id: 9, deleted: true}], 't2'), END]});
		is(done.asked, ['conferences/changes t0 45', 'conferences/changes t0 45', 'conferences/changes t1 45', 'conferences/changes t2 45']);
		is(done.states, ['loading', 'current', 'refused']);
		is(done.changes, ['true', 'false added 2 added 3', 'false removed 1']);
		is(done.pauses, [1000, 1000], 'no pause while more is waiting');
		is(done.ids, '2 3');
	}],
	['failures are waited out', async (model, is) => {
		const answers = [LOST, LOST, problem(503), problem(429, {'Retry-After': '7'}), {status: 200, data: {}}, page([], 't0'), page([], 't0'), END];
		const done = await run(model, {answers});
		is(done.states, ['loading', 'current', 'offline', 'current', 'refused']);
		const [first, second, third, limited, fifth] = done.pauses;
		for (const [pause, most] of [[first, 1000], [second, 2000], [third, 4000], [fifth, 16000]]) is(pause >= most / 2 && pause <= most, true, `${pause} of ${most}`);
		is(limited >= 7000 && limited <= 8000, true, `${limited}`);
		// After a failure it does not wait for news.
		is(done.asked.map(asked => asked.slice(-2)), ['45', ' 0', ' 0', ' 0', ' 0', ' 0', '45', '45']);
	}],
	['pauses do not grow without end', async (model, is) => {
		const done = await run(model, {answers: [...Array(40).fill(LOST), END]});
		is(Math.max(...done.pauses) <= 60000, true);
		is(Math.min(...done.pauses.slice(-20)) >= 30000, true);
	}],
	['a lost token loads the export again', async (model, is) => {
		for (const status of [410, 400]) {
			const loads = [{token: 't0', records: [record(1), record(2)]}, {token: 't5', records: [record(2, 'new'), record(3)]}];
			const done = await run(model, {loads, answers: [problem(status), page([], 't5'), END]});
			is(done.asked, ['conferences/changes t0 45', 'conferences/changes t5 0', 'conferences/changes t5 45']);
			is(done.changes, ['true', 'true removed 1 changed 2 added 3']);
			is(done.states, ['loading', 'current', 'loading', 'current', 'refused']);
			is(done.ids, '2 3');
		}
	}],
	['tokens that are always lost are no endless loop: there are pauses from the second one on', async (model, is) => {
		const loads = Array.from({length: 6}, (_, at) => ({token: `t${at}`, records: []}));
		const done = await run(model, {loads, answers: [...Array(5).fill(problem(410)), END]});
		is(done.pauses.length, 4);
		is(done.pauses.at(-1) >= 8000, true, `${done.pauses}`);
	}],
	['an export that fails is requested again', async (model, is) => {
		const loads = [new Error('broke off'), problem(503, {'Retry-After': '2'}), {token: 't0', records: [record(4)]}];
		const done = await run(model, {loads, answers: [page([], 't0'), END]});
		is(done.states, ['loading', 'offline', 'loading', 'offline', 'loading', 'current', 'refused']);
		is([done.pauses.length, done.ids], [3, '4']);
	}],
	['a refused key and too many records end it', async (model, is) => {
		for (const status of [401, 404]) {
			is((await run(model, {loads: [problem(status)]})).states, ['loading', 'refused'], `${status}`);
			is((await run(model, {answers: [problem(status)]})).states, ['loading', 'current', 'refused'], `${status}`);
		}
		is((await run(model, {loads: [{tooMany: 60000}]})).states, ['loading', 'too-many']);
	}],
	['a dataset that left the license is requested again, and the copy is not used until it is current', async (model, is) => {
		const old = {token: 't0', records: [record(1)]}, renamed = {token: 't5', records: [record(1, 'new')]}, first = page([], 't0');
		for (const [loads, answers, states, title] of [
			[[old], [first, problem(403), page([record(2)], 't1'), END], 'loading current refused current refused', 'the token is still valid'],
			[[old, renamed], [first, problem(403), problem(410), page([], 't5'), END], 'loading current refused current refused', 'the token has ended'],
			[[problem(403), old], [first, END], 'loading refused current refused', 'it was not in the license at first'],
			[[old], [problem(403), LOST, problem(503), problem(429), problem(403), first, END], 'loading current refused current refused', 'failures meanwhile'],
			[[old], [problem(403), page([record(2)], 't1', true), LOST, page([], 't2'), END], 'loading current refused current refused', 'a page of more, then a failure'],
			[[old], [problem(403), first, LOST, END], 'loading current refused current offline refused', 'a failure afterwards'],
			[[old, {tooMany: 9}], [problem(403), problem(410)], 'loading current refused too-many', 'too many records afterwards'],
		]) is((await run(model, {loads, answers})).states.join(' '), states, title);
		const {asked, pauses} = await run(model, {answers: [...Array(9).fill(problem(403, {'Retry-After': '1'})), first, END]});
		is(asked.map(one => one.slice(-2)), ['45', ...Array(9).fill(' 0'), '45'], 'it does not wait for news');
		is(pauses.length, 10);
		for (const pause of pauses.slice(0, 9)) is(pause >= 60000 && pause <= 61000, true, `${pause}`);
	}],
	['a failure is shown with the reason of the server, and records are shown only if there are some', async (model, is) => {
		const silent = 'The server gives no answer that can be read.', shown = 'You see the last known records, and the page tries again.', none = 'The page tries again.';
		const loaded = {token: 't0', records: [record(1)]};
		for (const [loads, answers, expected] of [
			[[loaded], [problem(503), END], `a 503 ${shown}`],
			[[loaded], [problem(500), END], `a 500 ${shown}`],
			[[loaded], [problem(429), END], `a 429 ${shown}`],
			[[problem(429), END], [], `a 429 ${none}`],
			[[loaded], [LOST, END], `${silent} ${shown}`],
			[[loaded], [{status: 200, data: {}}, END], `${silent} ${shown}`],
			[[problem(503), END], [], `a 503 ${none}`],
			[[loaded], [{problem: {title: 'Redirect', detail: 'It redirects.'}}, END], `It redirects. ${shown}`],
			[[new model.load.Failure('It broke off.'), END], [], `It broke off. ${none}`],
			[[new Error('Failed to fetch'), END], [], `${silent} ${none}`],
		]) is((await run(model, {loads, answers})).told.find(text => text.endsWith('tries again.')), expected);
		is((await run(model, {token: 't3', before: [record(1)], answers: [problem(503), END]})).told[0], `a 503 ${shown}`, 'a saved copy');
	}],
	['views use the copy unless the API knows better', ({follower: {usesCopy}}, is) => {
		for (const [name, status, expected] of [['loading', undefined, true], ['current', undefined, true], ['offline', 503, true], ['offline', undefined, true],
			['refused', 401, true], ['refused', 403, false], ['refused', 404, false], ['too-many', undefined, false]]) is(usesCopy({name, status}), expected, `${name} ${status}`);
	}],

	['a saved token continues, and an export loaded later is compared', async (model, is) => {
		const before = [record(1), record(2)], loads = [{token: 't5', records: [record(2, 'new'), record(3)]}];
		const done = await run(model, {token: 't3', before, loads, answers: [page([record(4)], 't4'), problem(410), END]});
		is(done.asked, ['conferences/changes t3 45', 'conferences/changes t4 45', 'conferences/changes t5 0']);
		is(done.changes, ['false added 4', 'true removed 1 removed 4 changed 2 added 3']);
		is([done.ids, done.pauses], ['2 3', [1000]]);
	}],
	['a copy that was kept is compared at once, and says how old it is until then', async ({follower: {Follower, describe}, copy: {Copy}}, is) => {
		const asked = [], states = [], answers = [LOST, page([], 't4'), END], copy = new Copy('conferences');
		const follower = new Follower({dataset: 'conferences', copy, ask: async (path, {since, wait}) => { asked.push([since, wait ?? 0].join(' ')); return answers.shift(); },
			load: () => { throw new Error('the export is not asked for'); }, onState: state => states.push(state), pause: async () => {}});
		follower.resume('t3');
		await follower.run();
		is(asked, ['t3 0', 't3 0', 't4 45']);
		is(states.map(({name, isLoaded}) => `${name} ${isLoaded ?? ''}`.trim()), ['offline true', 'current', 'refused']);
		const asOf = Date.UTC(2026, 4, 29, 12);
		is(/^As of 29 May 2026, \d\d:\d\d\. Looking for changes …$/.test(describe({name: 'kept', asOf})), true, describe({name: 'kept', asOf}));
		is(/You see the last known records \(as of 29 May 2026, \d\d:\d\d\), and/.test(describe({name: 'offline', isLoaded: true, asOf})), true);
	}],
	['an answer that arrives after the stop changes nothing', async (model, is) => {
		const late = await run(model, {answers: [page([], 't0'), page([record(8)], 't1')], stopAt: 2, answersAnyway: true});
		is([late.ids, late.changes, late.states, late.pauses, late.follower.token], ['1', ['true'], ['loading', 'current'], [1000], 't0']);
		const failed = await run(model, {answers: [page([], 't0'), problem(503)], stopAt: 2, answersAnyway: true});
		is([failed.pauses, failed.states], [[1000], ['loading', 'current']], 'no pause for a failure');
		const lost = await run(model, {answers: [problem(410)], stopAt: 1, answersAnyway: true});
		is([lost.follower.token, lost.states], ['t0', ['loading', 'current']]);
		for (const loads of [[{token: 't0', records: [record(8)]}], [problem(503)], [{tooMany: 9}]]) {
			const loaded = await run(model, {loads, stopInLoad: true});
			is([loaded.ids, loaded.changes, loaded.asked, loaded.pauses, loaded.states], ['', [], [], [], ['loading']]);
		}
	}],
	['each request waits for the page to be seen', async (model, is) => {
		const done = await run(model, {answers: [page([], 't0'), page([record(2)], 't1', true), LOST, END]});
		is([done.awake, done.asked.length], [5, 4], 'the export and four requests');
	}],
	['a named pause counts in seconds, and any other is as long as usual', async (model, is) => {
		for (const [after, least, most] of [['7', 7000, 8000], ['0', 500, 1000], ['120', 120000, 121000], ['Wed, 21 Oct 2026 07:28:00 GMT', 500, 1000], ['-3', 500, 1000], ['', 500, 1000]]) {
			for (const status of [429, 503]) {
				const {pauses: [pause]} = await run(model, {answers: [problem(status, {'Retry-After': after}), END]});
				is(pause >= least && pause <= most, true, `${status}, ${after}: ${pause}`);
			}
		}
	}],
	['only a refusal is final', async (model, is) => {
		for (const [status, states] of [[408, 'offline refused'], [429, 'offline refused'], [500, 'offline refused'], [502, 'offline refused'], [402, 'refused'], [499, 'refused']]) {
			is((await run(model, {answers: [problem(status), END]})).states.join(' '), `loading current ${states}`, `${status}`);
			is((await run(model, {loads: [problem(status), problem(401)]})).states.join(' '), status === 402 || status === 499 ? 'loading refused' : `loading ${states.split(' ')[0]} loading refused`, `${status} for the export`);
		}
	}],
	['pauses start again after a success', async (model, is) => {
		const done = await run(model, {answers: [LOST, LOST, LOST, page([], 't0', true), LOST, END]});
		const within = (pause, most) => is(pause >= most / 2 && pause <= most, true, `${pause} of ${most}`);
		[1000, 2000, 4000, 1000].forEach((most, at) => within(done.pauses[at], most));
	}],
	['a pause ends with its signal', async ({follower: {sleep}}, is) => {
		const woken = promise => Promise.race([promise.then(() => 'woken'), new Promise(resolve => setTimeout(resolve, 500, 'asleep'))]);
		const stopped = new AbortController(), later = new AbortController();
		stopped.abort();
		is(await woken(sleep(5000, stopped.signal)), 'woken', 'aborted before');
		const pause = sleep(5000, later.signal);
		later.abort();
		is(await woken(pause), 'woken', 'aborted meanwhile');
		is(await woken(sleep(0)), 'woken', 'without a signal');
	}],
	['an export of unknown size is loaded without numbers', ({follower: {describe}}, is) => {
		for (const total of [NaN, null, undefined, 0]) is(describe({name: 'loading', records: 3000, total}), 'Loading …', `${total}`);
		is(describe({name: 'loading', records: 3000, total: 9000}), 'Loading 3,000 of 9,000 records …');
	}],
	['a hurry ends a pause or a waiting request, and asks at once', async ({follower: {Follower}, copy: {Copy}}, is) => {
		// Requests and pauses last until they are ended, by `answer` or by the follower.
		const asked = [], states = [], pauses = [];
		let answer, loads = 0, isLost = false, stepped;
		const step = () => stepped?.();
		const until = what => new Promise(resolve => {
			stepped = () => what() && resolve();
			step();
		});
		const held = signal => new Promise(resolve => {
			answer = resolve;
			signal.addEventListener('abort', () => resolve(LOST));
			step();
		});
		const follower = new Follower({
			dataset: 'conferences', copy: new Copy('conferences'), load: async () => ++loads === 1 ? {problem: {detail: 'broke off'}} : {token: 't0', records: []},
			ask: async (path, {wait = 0}, signal) => {
				asked.push(wait);
				return isLost ? LOST : held(signal);
			},
			onState: ({name}) => states.at(-1) !== name && states.push(name),
			pause: async (ms, signal) => {
				pauses.push(ms);
				await held(signal);
			},
		});
		const done = follower.run();
		await until(() => pauses.length === 1);
		is([loads, states], [1, ['loading', 'offline']]);
		follower.hurry();
		await until(() => asked.length === 1);
		is([loads, asked], [2, [0]], 'an export that failed is asked for again');
		answer(page([], 't0'));
		await until(() => pauses.length === 2);
		answer();
		await until(() => asked.length === 2);
		is([states.at(-1), asked], ['current', [0, 45]]);
		// The network fails: the long poll ends, and the next request fails.
		isLost = true;
		follower.hurry();
		await until(() => states.at(-1) === 'offline' && pauses.length === 3);
		is(asked, [0, 45, 0]);
		for (let failures = 0; failures < 9; failures++) {
			answer();
			await until(() => pauses.length === 4 + failures);
		}
		is(pauses.at(-1) > 5000, true, 'pauses have grown');
		// The network returns.
		isLost = false;
		follower.hurry();
		await until(() => asked.length === 13);
		answer(page([], 't0'));
		await until(() => states.at(-1) === 'current');
		is([asked.at(-1), follower.failures], [0, 0]);
		// A browser may report the network before it works: the pauses start again.
		await until(() => pauses.length === 13);
		isLost = true;
		follower.failures = 6;
		follower.hurry();
		await until(() => pauses.length === 14);
		is(pauses.at(-1) <= 2000, true, `${pauses.at(-1)}`);
		follower.stop();
		await done;
	}],
	['a refusal is told by its reason, also by a gateway that gives none', ({follower: {describe, reasonOf}}, is) => {
		const silent = 'The server gave no answer that can be read. Check that it runs, and try again.';
		for (const [problem, expected] of [[{detail: 'a'}, 'a'], [{message: 'Forbidden'}, silent], [{detail: null}, silent], [{detail: 7}, '7'], [null, silent], [undefined, silent]]) {
			is([reasonOf(problem), describe({name: 'refused', problem})], [expected, `The server refuses the key: ${expected}`], JSON.stringify(problem));
		}
	}],
	['a key that may not be used from here is told to its reader', ({follower: {describe}}, is) => {
		for (const [name, type, expected] of [['refused', 'https://x.example/docs/errors/ip_not_allowed', true], ['refused', 'https://x.example/docs/errors/dataset_not_licensed', false], ['refused', undefined, false], ['offline', 'https://x.example/docs/errors/ip_not_allowed', false]]) {
			const state = {name, problem: {type, detail: 'Not from 192.0.2.9.'}, isLoaded: false};
			is(/This key may not be used from here.*192\.0\.2\.9/.test(describe(state)), expected, `${name} ${type}`);
		}
	}],
	['a computer without a network is named', ({follower: {describe}}, is) => {
		const state = {name: 'offline', isLoaded: true};
		is(describe({...state, isAlone: true}), 'This computer has no network. You see the last known records, and the page tries again.');
		is(describe({...state, isAlone: false}), 'The server gives no answer that can be read. You see the last known records, and the page tries again.');
		is(describe({name: 'current', isAlone: true}), 'Current', 'a server on this computer');
	}],
];
