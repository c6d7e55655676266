// The focus view by keyboard: a key presses a button, a decision goes without a reload, and its answer is the next item.
// Every form here also works without this script.

const place = (name) => document.querySelector(`[data-place="${name}"]`);
const alertBox = document.querySelector("[data-alert]");
const alertText = document.querySelector("[data-alert-text]");
const retry = document.querySelector("[data-retry]");
const said = document.querySelector("[data-said]");
const sheet = document.querySelector("[data-sheet]");
const help = document.querySelector("[data-help]");

let busy = false; // one request at a time: a second press of anything is dropped
let pending = null; // the button whose reason is asked for
let again = null; // what did not reach the server
let chosen = null; // of a merge: the button that says whose text is kept; another key approves

// Nobody decides what they have not read. A press so soon after the card came was meant for the card before it: the
// second half of a double click, a key that bounced or is held down. It is dropped; going to and fro is not.
const UNREAD = 400; // milliseconds
let shownAt = performance.now();
let openedAt = -UNREAD; // when reasons were unfolded, maybe under the pointer
let latest = { key: "", at: -UNREAD };

const unread = (event) => event.timeStamp - shownAt < UNREAD;
const bounced = (event) => {
  const same = event.key === latest.key && event.timeStamp - latest.at < UNREAD;
  latest = { key: event.key, at: event.timeStamp };
  return same;
};

const form = () => document.querySelector("[data-decide]");
const card = () => document.querySelector("[data-card]");

// --- what is shown ---------------------------------------------------------------------------------------------------

const fold = () => {
  pending = null;
  const here = form();
  if (!here) return;
  for (const panel of here.querySelectorAll("[data-panel], [data-words]")) panel.hidden = true;
  for (const one of here.querySelectorAll("[data-send], [data-cancel]")) one.hidden = true;
  for (const radio of here.querySelectorAll("input[type=radio]")) radio.checked = false;
  for (const button of here.querySelectorAll("[aria-expanded]")) button.removeAttribute("aria-expanded");
  here.querySelector("[name=reason]").value = "";
};

const unfold = (button, which) => {
  fold();
  pending = button;
  openedAt = performance.now();
  button.setAttribute("aria-expanded", "true");
  const panel = form().querySelector(`[data-panel="${which}"]`);
  panel.hidden = false;
  if (which !== "defer") form().querySelector("[data-words]").hidden = false;
  for (const one of form().querySelectorAll("[data-send], [data-cancel]")) one.hidden = which === "defer";
  panel.querySelector("input").focus();
  panel.scrollIntoView({ block: "nearest" });
};

// A merge keeps the text that the chip names. Where another is chosen than was proposed, its own fields take the place of those
// of the same name, which are struck out.
const instead = () => {
  const result = card().querySelector("[data-result]");
  const other = result?.querySelector("[data-chosen]");
  const labels = new Set([...(other?.querySelectorAll("dt") || [])].map((one) => one.textContent));
  result?.toggleAttribute("data-other", Boolean(other));
  for (const one of result?.querySelectorAll(":scope > .facts > div") || []) one.toggleAttribute("data-instead", labels.has(one.querySelector("dt").textContent));
};

const choose = (button) => {
  const now = card().querySelector(`[data-source="${button.dataset.key}"]`);
  for (const one of card().querySelectorAll("[data-kept]")) one.hidden = one.closest("[data-source]") !== now;
  for (const one of card().querySelectorAll("[data-otherwise]")) one.toggleAttribute("data-chosen", one.dataset.otherwise === button.dataset.key);
  instead();
  for (const one of form().querySelectorAll("[aria-pressed]")) one.removeAttribute("aria-pressed");
  button.setAttribute("aria-pressed", "true");
  chosen = button;
  said.textContent = `Text ${button.dataset.key} is chosen. Nothing is decided until you approve.`;
};

const quiet = () => { alertBox.hidden = true; alertText.textContent = ""; again = null; retry.hidden = true; };

const loud = (sentence, retriable) => {
  alertBox.hidden = false;
  alertText.textContent = sentence;
  retry.hidden = !retriable;
  alertBox.scrollIntoView({ block: "nearest" });
};

const show = (answer) => {
  if (answer.card !== undefined) place("card").innerHTML = answer.card;
  if (answer.side !== undefined) place("side").innerHTML = answer.side;
  fold();
  chosen = null;
  said.textContent = answer.sentence || "";
  said.toggleAttribute("data-drill", /^That was a drill/.test(answer.sentence || ""));
  card()?.focus({ preventScroll: true });
  window.scrollTo({ top: 0 });
  shownAt = performance.now();
};

// --- asking the server -----------------------------------------------------------------------------------------------

const ACCEPT = { Accept: "application/json" };
const SENTENCES = {
  403: "The server refused this. Sign in again in another tab, then try again.",
  404: "This item is not there any more.",
  500: "The server failed. Nothing is known to be decided; try again.",
};

const mark = (on) => {
  busy = on;
  document.querySelector(".focus-two").toggleAttribute("data-busy", on);
  for (const button of document.querySelectorAll("[data-decide] button, [data-undo] button")) {
    if (on) button.setAttribute("aria-busy", "true"); else button.removeAttribute("aria-busy");
  }
};

const ask = async (address, options) => {
  if (busy) return;
  mark(true);
  quiet();
  const once = () => ask(address, options);
  let answer, content;
  try {
    answer = await fetch(address, { ...options, headers: ACCEPT, credentials: "same-origin", redirect: "manual" });
    content = (answer.headers.get("content-type") || "").startsWith("application/json") ? await answer.json() : null;
  } catch {
    mark(false);
    again = once;
    loud("The server was not reached, so nothing is known to be decided.", true);
    return;
  }
  mark(false);
  if (answer.ok && content) { show(content); return; }
  const lost = answer.type === "opaqueredirect" ? SENTENCES[403] : SENTENCES[answer.status] || SENTENCES[500];
  if (!content) again = once;
  loud(content?.sentence || lost, !content);
};

const send = (button, extra = {}) => {
  const here = form();
  const data = new FormData(here);
  data.set("verb", button.value);
  for (const [name, value] of Object.entries(extra)) data.set(name, value);
  ask(here.action, { method: "POST", body: data });
};

const press = (button, shifted = false) => {
  if (button.value === "defer") { if (shifted) unfold(button, "defer"); else send(button); }
  else if (button.dataset.asks) unfold(button, button.dataset.asks);
  else if (button.value.startsWith("approve|keep:")) choose(button);
  else if (button.value === "approve" && chosen) send(button, { verb: chosen.value });
  else send(button);
};

const answerWith = (digit) => {
  const panel = form().querySelector("[data-panel]:not([hidden])");
  const radio = panel?.querySelectorAll("input[type=radio]")[digit - 1];
  if (!radio) return;
  radio.checked = true;
  send(pending);
};

// --- keys ------------------------------------------------------------------------------------------------------------

const DECIDES = "[data-decide] button:not([data-cancel]), [data-panel] label, [data-undo] button";
const typing = (element) => element.closest("textarea, select, [contenteditable], input:not([type=radio], [type=hidden])");

const open = () => {
  const evidence = document.querySelector("[data-evidence]");
  if (evidence) evidence.open = !evidence.open;
};

const reasoning = (key, event) => {
  if (key === "Escape") { fold(); card()?.focus(); }
  else if (key === "w") form().querySelector("[name=reason]").focus();
  else if (/^[1-9]$/.test(key)) { if (!bounced(event)) answerWith(Number(key)); }
  else if (key === "Enter" && !document.activeElement.closest("button, a, summary")) send(pending);
  else return false;
  return true;
};

const walking = (key, event) => {
  const letter = { ArrowRight: "n", ArrowLeft: "p" }[key] || key;
  const target = document.querySelector(`[data-place] [data-key="${CSS.escape(letter)}"]`);
  if (key === "o") { open(); return true; }
  if (key === "t" && again) { again(); return true; }
  if (!target) return false;
  if (target.closest(DECIDES) && (bounced(event) || unread(event))) return true;
  if (target.matches("[data-decide] button:not([formaction])")) press(target);
  else target.click();
  return true;
};

document.addEventListener("keydown", (event) => {
  if (event.repeat && event.target.closest(DECIDES)) event.preventDefault(); // Enter held down on a button presses once
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || sheet.open) return;
  if (typing(event.target)) {
    if (event.key === "Escape" && pending) { fold(); card()?.focus(); event.preventDefault(); }
    if (event.key === "Enter" && pending && event.target.name === "reason") { event.preventDefault(); send(pending); }
    return;
  }
  if (event.key === "?") { sheet.showModal(); event.preventDefault(); return; }
  if (busy) { if (event.key.length === 1) event.preventDefault(); return; }
  if (event.shiftKey) {
    const later = event.key === "L" && !pending && form()?.querySelector('button[value="defer"]');
    if (later) { unfold(later, "defer"); event.preventDefault(); }
    return;
  }
  if (pending ? reasoning(event.key, event) : walking(event.key, event)) event.preventDefault();
});

// --- pointers and forms ----------------------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  if (!event.target.closest(DECIDES)) return;
  const under = event.detail > 0 && event.timeStamp - openedAt < UNREAD && event.target.closest("[data-panel], [data-send]");
  if (event.detail < 2 && !unread(event) && !under) return;
  event.preventDefault();
  event.stopPropagation();
}, true);
document.addEventListener("submit", (event) => {
  const sent = event.target;
  if (sent.matches("[data-undo]")) {
    event.preventDefault();
    ask(sent.action, { method: "POST", body: new FormData(sent) });
  } else if (sent.matches("[data-decide]")) {
    if (event.submitter?.hasAttribute("formaction")) return; // it leads to a page of its own
    event.preventDefault();
    if (event.submitter) press(event.submitter);
  }
});
document.addEventListener("click", (event) => {
  const step = event.target.closest("a[data-step]");
  if (step && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    ask(step.href, {});
  } else if (event.target.closest("[data-send]") && pending) send(pending);
  else if (event.target.closest("[data-cancel]")) { fold(); card()?.focus(); }
  else if (event.target.closest("[data-retry]")) again?.();
  else if (event.target.closest("[data-help]")) sheet.showModal();
  else if (pending && event.detail > 0 && event.target.matches("[data-panel] input")) send(pending);
});

window.addEventListener("pageshow", (event) => { if (event.persisted) shownAt = performance.now(); });

help.hidden = false;
fold();
