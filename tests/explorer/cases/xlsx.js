import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const READ = `
import json, re, sys, zipfile
import xml.etree.ElementTree as xml
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
for name in archive.namelist(): xml.fromstring(archive.read(name))
sheet = xml.fromstring(archive.read('xl/sheet.xml'))
m = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
print(json.dumps([[[c.get('t') or c.get('s'), ''.join(c.itertext())] for c in row.iter(m + 'c')] for row in sheet.iter(m + 'row')]))
`;

/** The cells of a workbook as another program reads them: [type or style, text]. */
async function cellsOf(parts) {
	const folder = mkdtempSync(join(tmpdir(), 'xlsx-'));
	try {
		writeFileSync(join(folder, 'a.xlsx'), Buffer.from(await new Blob(parts).arrayBuffer()));
		return JSON.parse(execFileSync('python3', ['-c', READ, join(folder, 'a.xlsx')], {encoding: 'utf8'}));
	} finally {
		rmSync(folder, {recursive: true});
	}
}

export const cases = [
	['a workbook has days, numbers and texts as such, and no formulas', async ({xlsx: {xlsx}}, is) => {
		const rows = [{a: '2027-03-15', b: 1.5, c: '=1+1', d: true}, {a: '1899-01-01', b: null, c: '<&"\u0000\ud800 ü 🧬>', d: ['x', 'y']}, {a: '2027-02-30', b: 0, c: ' two  blanks ', d: ''}];
		is(await cellsOf(xlsx(rows)), [
			[['inlineStr', 'a'], ['inlineStr', 'b'], ['inlineStr', 'c'], ['inlineStr', 'd']],
			[['1', '46461'], [null, '1.5'], ['inlineStr', '=1+1'], ['b', '1']],
			[['inlineStr', '1899-01-01'], [null, ''], ['inlineStr', '<&" ü 🧬>'], ['inlineStr', 'x; y']],
			[['inlineStr', '2027-02-30'], [null, '0'], ['inlineStr', ' two  blanks '], [null, '']],
		]);
		is((await cellsOf(xlsx([]))).length, 1, 'no records');
		for (const [given, expected] of [[rows, ['12', '5', '15', '6']], [[{a: 'x'.repeat(99)}], ['42']], [[], []]]) {
			is([...(await new Blob(xlsx(given)).text()).matchAll(/<col [^>]*width="(\d+)"/g)].map(([, width]) => width), expected, 'a day is wider than an empty column');
		}
	}],
];
