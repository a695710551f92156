// Gives every block of code a button that copies it. Without this script a page lacks the buttons and nothing else.
"use strict";

const told = document.createElement("p");
told.className = "told";
told.setAttribute("role", "status");
told.setAttribute("aria-live", "polite");
document.body.append(told);

// The clipboard is closed to pages that came over plain HTTP from another machine: those select the text and use the
// older command.
async function copy(block) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(block.textContent);
      return true;
    } catch {
      // Not allowed: the older command may be.
    }
  }
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
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy code: ${heading}`);
  let timer;
  button.addEventListener("click", async () => {
    const copied = await copy(element);
    button.textContent = copied ? "Copied" : "Selected";
    // Emptied first, so that the same words are announced again.
    told.textContent = "";
    requestAnimationFrame(() => {
      told.textContent = copied ? "Copied to the clipboard." : "The code is selected: press Ctrl+C to copy it.";
    });
    clearTimeout(timer);
    timer = setTimeout(() => {
      button.textContent = "Copy";
      told.textContent = "";
    }, 4000);
  });
  const frame = document.createElement("div");
  frame.className = "code";
  element.replaceWith(frame);
  frame.append(element, button);
}
