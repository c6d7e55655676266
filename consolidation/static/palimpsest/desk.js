// Small conveniences; every page works without them. Nothing here decides anything.

// One click, one request: the second click of a double click is dropped.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-busy", "true");
  });
}
// Back in the history: the page may be used again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-once]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-busy");
  }
});

// What scrolls sideways in a box of its own scrolls by keyboard, too.
const sized = new ResizeObserver((boxes) => {
  for (const { target } of boxes) target.toggleAttribute("tabindex", target.scrollWidth > target.clientWidth);
  for (const box of document.querySelectorAll(".scroll[tabindex='']")) box.tabIndex = 0;
});
for (const box of document.querySelectorAll(".scroll")) sized.observe(box);

// The room that the page is in is in sight, and the tab that is open: both lists may be longer than their place.
for (const here of document.querySelectorAll(".further [aria-current], .tabs [aria-current]")) {
  const list = here.closest(".further, .tabs ul");
  const [mine, its] = [here.getBoundingClientRect(), list.getBoundingClientRect()];
  list.scrollTop += Math.max(0, mine.bottom - its.bottom + 32);
  list.scrollLeft += Math.max(0, mine.right - its.right + 32);
}

// What stands beside or above a list is folded where the window is narrow. Without this script it stays open.
const narrow = matchMedia("(max-width: 900px)");
const fold = () => { for (const one of document.querySelectorAll("details[data-fold]")) one.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();

// A chosen filter applies at once.
for (const form of document.querySelectorAll("form[data-filters]")) {
  form.querySelector("button")?.classList.add("visually-hidden");
  form.addEventListener("change", () => form.requestSubmit());
}

// How many are selected, on the buttons that decide them.
const bar = document.querySelector("[data-decidebar]");
if (bar) {
  const all = bar.querySelector("[data-all]");
  const picks = [...document.querySelectorAll("[data-pick]")];
  const count = () => {
    const chosen = all.checked ? picks.length : picks.filter((pick) => pick.checked).length;
    bar.toggleAttribute("data-chosen", chosen > 0);
    for (const place of bar.querySelectorAll("[data-count]")) place.textContent = chosen ? ` ${chosen}` : "";
  };
  all.addEventListener("change", () => { for (const pick of picks) pick.checked = all.checked; count(); });
  for (const pick of picks) pick.addEventListener("change", () => { if (!pick.checked) all.checked = false; count(); });
  count();
}

// Keys: j and k walk a list, x picks, Enter opens, / searches.
const rows = [...document.querySelectorAll("[data-list] [data-row]")];
let at = -1;
const walk = (step) => {
  if (!rows.length) return;
  rows[at]?.classList.remove("at");
  at = Math.min(rows.length - 1, Math.max(0, at + step));
  rows[at].classList.add("at");
  rows[at].scrollIntoView({ block: "nearest" });
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, button, a")) return;
  if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
  else if (event.key === "x") rows[at]?.querySelector("[data-pick]")?.click();
  else if (event.key === "Enter") rows[at]?.querySelector("[data-open]")?.click();
  else if (event.key === "/") { document.querySelector("[data-search]")?.focus(); event.preventDefault(); }
});
