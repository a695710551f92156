// Compares the page's folding with the server's. The variable FOLDED names a file of lines [text, folded text].
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';
import {fold} from '../../src/explorer/model/fold.js';

test('the page folds as the server', () => {
	const lines = readFileSync(process.env.FOLDED, 'utf8').split('\n').filter(Boolean);
	const wrong = lines.map(line => JSON.parse(line)).filter(([text, folded]) => fold(text) !== folded);
	assert.ok(lines.length > 1000, `only ${lines.length} texts`);
	assert.deepEqual(wrong.map(([text, folded]) => [text, fold(text), folded]), []);
});
