// Starred deadlines without a date. They are in no month and in no calendar, so they are named.
import {html} from '../preact.js';
import {KINDS, untilOf} from '../model/deadlines.js';
import {firstQuestion} from '../model/question.js';
import {select} from '../model/select.js';
import {Status, count, link} from '../parts.js';
import {shortName} from './columns.js';

/** The deadlines without a date of the starred records that fit a question, but for its period: [{record, kind, status}]. */
export function undatedOf(index, question, stars, day) {
	const {dataset, words, facets, kind} = question, ids = question.ids ?? stars;
	if (dataset !== 'conferences' || !ids.length) return [];
	const {records} = select(index, {...firstQuestion(dataset), words, facets, ids, past: 'yes'}, day), kinds = kind ? [kind] : Object.keys(KINDS);
	return records.filter(record => untilOf(record) >= day).flatMap(record => kinds.filter(kind => !record[`${kind}_due_date`])
		.map(kind => ({record, kind, status: record[`${kind}_due_date_status`]})));
}

/** Names deadlines without a date. `isShown`: on the screen too, not only on paper. */
export const Undated = ({of, isShown}) => of.length > 0 && html`<section class="undated ${isShown ? '' : 'paper'}"><h3>Starred, without a date <span class="count">${of.length}</span></h3>
	<ul>${of.map(({record, kind, status}) => html`<li><a href=${link(`conferences/${record.id}`)}><bdi>${shortName(record)}</bdi></a> ${KINDS[kind]} <${Status} of=${status} /></li>`)}</ul></section>`;

/** The same in a sentence. */
export const undatedWords = of => `${count(of.length, 'starred deadline')} without a date ${of.length === 1 ? 'is' : 'are'} not in the file: ${of.map(({record, kind}) => `${shortName(record)} (${KINDS[kind].toLowerCase()})`).join(', ')}.`;
