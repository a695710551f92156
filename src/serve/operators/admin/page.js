// Loads the page again every 15 seconds, unless it is hidden, or a part of it has the focus or is selected.
const PAUSE_MS = 15000;
const box = document.getElementById('live');
box.parentElement.hidden = false;

async function refresh() {
	const inUse = document.activeElement !== document.body && document.activeElement !== box;
	const busy = document.hidden || !box.checked || inUse || !getSelection().isCollapsed;
	if (busy) return;
	try {
		const answer = await fetch('/');
		if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
		const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
		document.title = next.title;
		for (const part of ['header', 'main', 'footer time']) {
			document.querySelector(part).replaceWith(document.importNode(next.querySelector(part), true));
		}
		document.body.classList.remove('stale');
	} catch {
		// The figures stay, and say of when they are.
		document.title = 'medfeed: no answer';
		document.body.classList.add('stale');
	}
}

setInterval(refresh, PAUSE_MS);
