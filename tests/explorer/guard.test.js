// Compares the cells of the page's CSV with those of the server: the variable SERVER_CELLS names a file of [text, cell] pairs.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import test from 'node:test';
import {csv} from '../../src/explorer/model/csv.js';

test('the page guards the texts that the server guards', async () => {
	for (const [text, cell] of JSON.parse(await readFile(process.env.SERVER_CELLS, 'utf8'))) {
		const quoted = /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
		assert.equal(csv([{text}]), `\ufefftext\r\n${quoted}\r\n`, JSON.stringify(text));
	}
});
