// Runs cases of the script of the operators' page, on a page of a few stubs. The variable OPERATORS_SCRIPT names the script.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';
import vm from 'node:vm';

const SCRIPT = readFileSync(process.env.OPERATORS_SCRIPT, 'utf8');

/** Runs the script once, and then its timer, with a state of the page, which may change while the answer arrives. Returns what it did. */
async function run(change = () => {}, answer = () => new Response('<new>'), changeMeanwhile = () => {}) {
	const done = {asked: [], limits: [], replaced: [], classes: new Set(['stale']), every: []};
	const box = {checked: true, parentElement: {hidden: true}}, body = {classList: {add: name => done.classes.add(name), remove: name => done.classes.delete(name)}};
	const document = {hidden: false, title: 'old', body, activeElement: body, getElementById: () => box, importNode: node => node,
		querySelector: part => ({replaceWith: node => done.replaced.push([part, node])})};
	const page = {document, selected: false};
	vm.runInNewContext(SCRIPT, {document, getSelection: () => ({isCollapsed: !page.selected}), Error,
		AbortSignal: {timeout: ms => ({ms})},
		fetch: async (path, {signal} = {}) => {
			done.asked.push(path);
			done.limits.push(signal?.ms);
			const given = answer();
			changeMeanwhile({page, document, box, other: {}});
			return given;
		},
		DOMParser: class { parseFromString(text) { return {title: `title of ${text}`, querySelector: part => `${part} of ${text}`}; } },
		setInterval: (turn, ms) => { done.every.push(ms); done.turn = turn; }});
	change({page, document, box, other: {}});
	await done.turn();
	return {...done, box, title: document.title};
}

test('an unused page is loaded again every 15 seconds', async () => {
	const {asked, replaced, classes, every, box, title} = await run();
	assert.deepEqual([asked, every, title, classes.size, box.parentElement.hidden], [['/'], [15000], 'title of <new>', 0, false]);
	assert.deepEqual(replaced, ['header', 'main', 'footer time'].map(part => [part, `${part} of <new>`]));
});

const USES = [({document}) => { document.hidden = true; }, ({box}) => { box.checked = false; }, ({document, other}) => { document.activeElement = other; }, ({page}) => { page.selected = true; }];

test('a page in use stays as it is', async () => {
	for (const use of USES) {
		const {asked, replaced, title} = await run(use);
		assert.deepEqual([asked, replaced, title], [[], [], 'old'], String(use));
	}
	// The box itself keeps the focus after a click.
	assert.deepEqual((await run(({document, box}) => { document.activeElement = box; })).asked, ['/']);
});

test('a page that is used while the answer arrives stays as it is', async () => {
	for (const use of USES) {
		const {asked, replaced, title} = await run(() => {}, undefined, use);
		assert.deepEqual([asked, replaced, title], [['/'], [], 'old'], String(use));
	}
});

test('a request ends when the next one begins', async () => {
	const {limits, every} = await run();
	assert.deepEqual(limits, every);
});

test('figures that cannot be renewed stay, and say so', async () => {
	for (const answer of [() => { throw new Error('no server'); }, () => new Response('busy', {status: 503}), () => new Response('', {status: 404})]) {
		const {replaced, classes, title} = await run(() => {}, answer);
		assert.deepEqual([replaced, [...classes], title], [[], ['stale'], 'medfeed: no answer']);
	}
});
