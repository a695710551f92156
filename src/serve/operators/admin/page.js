// Loads the page again every 15 seconds while it is seen, and keeps what is focused and selected.
const PAUSE_MS = 15000;
const box = document.getElementById('live');
box.parentElement.hidden = false;

async function refresh() {
	const busy = document.hidden || !box.checked || !getSelection().isCollapsed;
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
