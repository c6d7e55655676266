// Times are written by the server in UTC. Here they become the reader's, with the exact value in UTC as their title; a
// button at the foot of the page shows them all in UTC again. Without this script they stay in UTC, as the foot says.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const form = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const clocks = { local: new Intl.DateTimeFormat("en-US", form), utc: new Intl.DateTimeFormat("en-US", { ...form, timeZone: "UTC" }) };
const KEPT = "palimpsest.times";
let shown = localStorage.getItem(KEPT) === "utc" ? "utc" : "local";

const words = (at, timed) => {
  const part = Object.fromEntries(clocks[shown].formatToParts(at).map(({ type, value }) => [type, value]));
  const day = `${part.day} ${part.month} ${part.year}`;
  return timed ? `${day}, ${part.hour}:${part.minute}` : day;
};

// Where the text after it says "UTC", that is taken away while it would be untrue.
const named = (time) => {
  const after = time.nextSibling;
  if (after?.nodeType !== Node.TEXT_NODE) return;
  if (time.dataset.utc === undefined) time.dataset.utc = /^\s*UTC\b/.test(after.data) ? "said" : "";
  if (time.dataset.utc !== "said") return;
  after.data = after.data.replace(/^\s*UTC\b/, "");
  if (shown === "utc") after.data = ` UTC${after.data}`;
};

const tell = (time) => {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) return;
  time.title = `${at.toISOString().replace("T", " ").replace(/\.\d+Z$/, "")} UTC`;
  const said = words(at, /\d\d:\d\d/.test(time.textContent));
  if (time.textContent !== said) time.textContent = said;
  named(time);
};
const all = (within) => { for (const time of within.querySelectorAll("time[datetime]")) tell(time); };

const foot = document.querySelector("[data-zone]");
const turn = foot?.querySelector("button");
const say = () => {
  foot.querySelector("span").textContent = shown === "utc" ? "Times are in UTC." : `Times are in ${zone}.`;
  turn.textContent = shown === "utc" ? `Show them in ${zone}` : "Show them in UTC";
};
if (turn && zone !== "UTC") {
  turn.hidden = false;
  turn.addEventListener("click", () => {
    shown = shown === "utc" ? "local" : "utc";
    localStorage.setItem(KEPT, shown);
    say();
    all(document);
  });
}
if (foot) say();
all(document);

// What arrives later (the next item of the focus view, a preview) is told as well.
new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) all(node);
}).observe(document.body, { childList: true, subtree: true });
