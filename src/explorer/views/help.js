// Help for planners, on one page.
import {html} from '../preact.js';
import {Legend, Title} from '../parts.js';

export const Help = () => html`<div class="help"><${Title}>Help<//>
	<h2>Search</h2>
	<p>Type names, places, therapy areas, organizations, tags or years. Every word must fit the beginning of a word of the record: <kbd>esmo 2027</kbd>, <kbd>oncol japan</kbd>. Capitals and accents do not matter. Short names come first: <kbd>BMJ</kbd>, <kbd>Nat Med</kbd>. A month (<kbd>march 2027</kbd>, <kbd>03/2027</kbd>), a day (<kbd>15 march 2027</kbd>), a short year (<kbd>esmo 27</kbd>), <kbd>late-breaking</kbd> and <kbd>confirmed</kbd> are words too, and so are a journal's initials (<kbd>NEJM</kbd>). <kbd>-word</kbd> leaves records out. <kbd>weekend</kbd>, <kbd>next month</kbd>, <kbd>in 30 days</kbd> and <kbd>deadlines in march</kbd> are times of deadlines, <kbd>not confirmed</kbd> is how sure they are, <kbd>aacr 2026 2027</kbd> has both years, and journals take <kbd>open access</kbd>, <kbd>no fee</kbd>, <kbd>impact &gt;5</kbd>, <kbd>fee &lt;3k</kbd>, <kbd>12 weeks</kbd>: each becomes a filter above the list, which a click removes. In quotation marks they are words: <kbd>"weekend"</kbd>.</p>
	<p><kbd>/</kbd> goes to the search, and <kbd>Enter</kbd> to the results. <kbd>Esc</kbd> closes a menu. Arrow keys move within a choice, such as the months of the year.</p>
	<h2>Deadlines</h2>
	<p>A list begins with what is due next. <em>30, 60, 90 days</em> and the bars of the year narrow it to a period. <em>Months</em> shows each deadline in its month. The small line in a row begins today: its dot is the deadline, its bar the meeting.</p>
	<h2>How sure a date is</h2>
	<${Legend} />
	<p>A due date is a date as the organizer states it. Ask the organizer when exactly that day ends.</p>
	<h2>Filters</h2>
	<p><em>Filter</em> opens areas, regions, years and numbers. Values of one kind widen a list, different kinds narrow it. What you chose is above the list; a click removes it. Records that may fit, but have no value yet, are counted below the list.</p>
	<h2>Your lists</h2>
	<p>A star puts a record on your list. <em>Lists</em> has its notes and its order, and more lists: one for each product or client. <em>Copy link</em> shares names and records, <em>Save as a file</em> shares notes too. Colleagues see what their own license shows. <em>Only starred</em> narrows a table to the list, and two to four records can be compared side by side. Starred deadlines without a date are named in <em>Months</em>, and on paper.</p>
	<h2>Take it with you</h2>
	<p><em>Export</em> has the calendar file with a reminder, Excel and CSV, the print, and a link. A later calendar file renews the events of an earlier one. The link holds the filters, never your key: a colleague opens it with their own.</p>
	<h2>What changed</h2>
	<p>The list is always current: changes arrive by themselves. <em>Changes</em> tells them with their old values, since your last visit if this computer keeps the records.</p>
	<h2>A new key</h2>
	<p>Choose <em>Use another key</em> in the menu of your key. A key of the same license keeps your lists and records. Lists stay when a key ends, and wait for the next one. A key of another client is kept apart, with lists of its own: give each key a name, and change between them in the same menu.</p></div>`;
