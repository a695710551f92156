// CSV of a view (RFC 4180), with the columns of the server's CSV export.
import {textOf} from './json.js';

const labels = {tags: tag => `${tag.type}: ${tag.name}`, organizations: organization => organization.name};

/** A record's values by column: nested fields joined by underscores, lists as texts. */
function flatten(value, path = '', row = {}) {
	if (Array.isArray(value)) row[path] = value.map(labels[path] ?? String).join('; ');
	else if (value && typeof value === 'object') for (const name in value) flatten(value[name], path + (path && '_') + name, row);
	else row[path] = value;
	return row;
}

/** A value as a cell, as the server writes it. A spreadsheet would run a text that begins like a formula; an import removes the apostrophe before it. */
function cell(value, path, separator) {
	if (value == null) return '';
	if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE';
	const text = typeof value === 'string' && /^'*[=+\-@\t\r]/.test(value) ? "'" + value : textOf(path, value);
	if (separator === ';' && typeof value === 'number') return text.replace('.', ',');
	return /[",;\t\r\n\u0085\u2028\u2029]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** The columns of records, or of deadlines [{record, kind, date, confidence}], and their values by column: {columns, rows}. */
export function tableOf(rows) {
	const flat = rows.map(row => row.record ? {deadline: row.kind, date: row.date, confidence: row.confidence, ...flatten(row.record)} : flatten(row));
	const columns = [...new Set(flat.flatMap(Object.keys))];
	return {columns, rows: flat};
}

/** A CSV file of records or deadlines in their order, with a byte-order mark. With `;` between cells numbers have decimal commas. */
export function csv(given, separator = ',') {
	const {columns, rows} = tableOf(given);
	return '\ufeff' + [columns.map(name => cell(name)), ...rows.map(row => columns.map(name => cell(row[name], name, separator)))].map(line => line.join(separator) + '\r\n').join('');
}
