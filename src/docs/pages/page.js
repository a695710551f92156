// Adds a copy button to every block of code, and folds the tables of fields on narrow screens. Pages work without it.
"use strict";

if (matchMedia("(max-width: 48rem)").matches) {
  for (const fields of document.querySelectorAll("details.fields")) fields.open = false;
}

const announcement = Object.assign(document.createElement("p"), {className: "announcement", role: "status"});
document.body.append(announcement);

// Browsers give no clipboard to pages over plain HTTP. Then the text is selected and copied by the older command.
async function copy(block) {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {}
  getSelection().selectAllChildren(block);
  const copied = document.execCommand("copy");
  if (copied) getSelection().removeAllRanges();
  return copied;
}

let heading = "";
for (const element of document.querySelectorAll("h1, h2, h3, summary, pre")) {
  if (element.tagName !== "PRE") {
    heading = element.textContent.trim();
    continue;
  }
  const button = Object.assign(document.createElement("button"), {type: "button", className: "copy", textContent: "Copy", ariaLabel: `Copy code: ${heading}`});
  let timer;
  button.addEventListener("click", async () => {
    const copied = await copy(element);
    button.textContent = copied ? "Copied" : "Selected";
    // Clear it first, so that screen readers announce the same text again.
    announcement.textContent = "";
    requestAnimationFrame(() => {
      announcement.textContent = copied ? "Copied to the clipboard." : "The code is selected: press Ctrl+C to copy it.";
    });
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = "Copy";
      announcement.textContent = "";
    }, 4000);
  });
  const frame = Object.assign(document.createElement("div"), {className: "code"});
  element.replaceWith(frame);
  frame.append(element, button);
}
