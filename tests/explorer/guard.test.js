// Compares the cells of the page's CSV with those of the server: the variable SERVER_CELLS names a file of [text, line] pairs.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import test from 'node:test';
import {csv} from '../../src/explorer/model/csv.js';

test('the page guards and quotes the texts that the server guards and quotes', async () => {
	for (const [text, line] of JSON.parse(await readFile(process.env.SERVER_CELLS, 'utf8'))) {
		assert.equal(csv([{text}]), `\ufefftext\r\n${line}`, JSON.stringify(text));
	}
});
