// A workbook (Office Open XML) of a view: one sheet in a ZIP archive without compression.
import {isDay} from './deadlines.js';
import {tableOf} from './csv.js';

/** Spreadsheets count days from here. They take 1900 for a leap year, so earlier days stay texts. */
const DAY_0 = Date.UTC(1899, 11, 30), FIRST = '1900-03-01';
const MAX_CELL = 32767;
/** The widest column, in letters, and the rows that decide its width. */
const MAX_WIDTH = 40, LOOKED_AT = 500;
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main', OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships', PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
/** The styles of cells, by their numbers: none, a day, a head. */
const STYLES = `${HEAD}<styleSheet xmlns="${MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts><fonts count="2"><font/><font><b/></font></fonts><fills count="1"><fill><patternFill patternType="none"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf/><xf numFmtId="164" applyNumberFormat="1"/><xf fontId="1" applyFont="1"/></cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`;
const relation = (id, type, target) => `<Relationship Id="${id}" Type="${OFFICE}/${type}" Target="${target}"/>`;
const relations = (...list) => `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${list.join('')}</Relationships>`;
const part = (name, type) => `<Override PartName="/xl/${name}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.${type}+xml"/>`;

/** A text in XML, without the characters that XML forbids. */
const escape = text => text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '').replace(/[&<>"]/g, mark => `&#${mark.charCodeAt()};`);

function cell(value, style = 0) {
	if (value == null || value === '') return '<c/>';
	if (typeof value === 'number') return `<c><v>${value}</v></c>`;
	if (typeof value === 'boolean') return `<c t="b"><v>${Number(value)}</v></c>`;
	if (isDay(value) && value >= FIRST) return `<c s="1"><v>${(Date.parse(value) - DAY_0) / 86400000}</v></c>`;
	return `<c t="inlineStr" s="${style}"><is><t xml:space="preserve">${escape([...value].slice(0, MAX_CELL).join(''))}</t></is></c>`;
}

const TABLE = Uint32Array.from({length: 256}, (_, byte) => {
	let sum = byte;
	for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? sum >>> 1 ^ 0xedb88320 : sum >>> 1;
	return sum;
});
const crc32 = bytes => {
	let sum = -1;
	for (const byte of bytes) sum = TABLE[(sum ^ byte) & 255] ^ sum >>> 8;
	return ~sum >>> 0;
};

/** Bytes of numbers [[size, number]], the lowest byte first. */
const bytesOf = numbers => numbers.flatMap(([size, number]) => Array.from({length: size}, (_, at) => Math.floor(number / 256 ** at) & 255));

/** A ZIP archive of files [[name, text]], as parts of a Blob. Each file has the first day that ZIP knows. */
function zip(files) {
	const parts = [], directory = [], encoder = new TextEncoder();
	let offset = 0;
	for (const [name, text] of files) {
		const title = encoder.encode(name), body = encoder.encode(text), {length} = body;
		const fields = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, 33], [4, crc32(body)], [4, length], [4, length], [2, title.length], [2, 0]];
		const head = Uint8Array.from([...bytesOf([[4, 0x04034b50], ...fields]), ...title]);
		parts.push(head, body);
		directory.push(...bytesOf([[4, 0x02014b50], [2, 20], ...fields, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), ...title);
		offset += head.length + length;
	}
	return [...parts, Uint8Array.from([...directory, ...bytesOf([[4, 0x06054b50], [4, 0], [2, files.length], [2, files.length], [4, directory.length], [4, offset], [2, 0]])])];
}

/** A workbook of records or deadlines in their order, with days and numbers as such, as parts of a Blob. */
export function xlsx(given) {
	const {columns, rows} = tableOf(given);
	const lines = [columns.map(name => cell(name, 2)), ...rows.map(row => columns.map(name => cell(row[name])))].map(cells => `<row>${cells.join('')}</row>`).join('');
	// A spreadsheet shows a day in a narrow column as `#####`.
	const widths = columns.map((name, at) => `<col min="${at + 1}" max="${at + 1}" customWidth="1" width="${Math.min(MAX_WIDTH, Math.max(...[name, ...rows.slice(0, LOOKED_AT).map(row => row[name] ?? '')].map(text => String(text).length))) + 2}"/>`).join('');
	return zip([
		['[Content_Types].xml', `${HEAD}<Types xmlns="${PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>${part('workbook', 'sheet.main')}${part('styles', 'styles')}${part('sheet', 'worksheet')}</Types>`],
		['_rels/.rels', relations(relation('r1', 'officeDocument', 'xl/workbook.xml'))],
		['xl/workbook.xml', `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets><sheet name="medfeed" sheetId="1" r:id="r1"/></sheets></workbook>`],
		['xl/_rels/workbook.xml.rels', relations(relation('r1', 'worksheet', 'sheet.xml'), relation('r2', 'styles', 'styles.xml'))],
		['xl/styles.xml', STYLES],
		['xl/sheet.xml', `${HEAD}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>${widths && `<cols>${widths}</cols>`}<sheetData>${lines}</sheetData></worksheet>`],
	]);
}
