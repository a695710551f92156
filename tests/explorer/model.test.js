// Runs the cases of the explorer's model.
//
// Each file in `cases` holds a table of [title, run(model, is)]. `model` has the exports of all modules, by file name.
// `is(actual, expected, what)` compares by JSON.
import assert from 'node:assert/strict';
import {readdir} from 'node:fs/promises';
import test from 'node:test';
import {pathToFileURL} from 'node:url';

// The variable EXPLORER_MODEL names the folder of the modules.
const MODEL = pathToFileURL(process.env.EXPLORER_MODEL + '/');
const CASES = new URL('./cases/', import.meta.url);

const is = (actual, expected, what) => assert.equal(JSON.stringify(actual), JSON.stringify(expected), what);

/** All modules of a folder by their names. */
async function modules(folder) {
	const files = (await readdir(folder)).filter(file => file.endsWith('.js')).sort();
	return Object.fromEntries(await Promise.all(files.map(async file => [file.slice(0, -3), await import(new URL(file, folder))])));
}

const model = await modules(MODEL);
for (const [file, {cases}] of Object.entries(await modules(CASES))) {
	for (const [title, run] of cases) test(`${file}: ${title}`, () => run(model, is));
}
