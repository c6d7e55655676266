// One item by keyboard, and the live preview of an edit. Everything here also works without this script.

const typing = (target) =>
  target instanceof Element && (target.isContentEditable || target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])"));

const reason = (button) => button.form?.elements.namedItem("reason");

let asked = null; // the button that waits for its reason

const press = (one) => {
  if (one instanceof HTMLInputElement) {
    one.checked = true;
    one.focus();
    one.dispatchEvent(new Event("change", { bubbles: true }));
    return;
  }
  const why = one.hasAttribute("data-reason") ? reason(one) : null;
  if (why && !why.value.trim()) { asked = one; why.focus(); why.scrollIntoView({ block: "center" }); return; }
  if (one instanceof HTMLButtonElement) one.form.requestSubmit(one); else one.click();
};

const evidence = () => {
  const all = [...document.querySelectorAll("[data-evidence]")];
  const open = all.some((one) => !one.open);
  for (const one of all) one.open = open;
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  if (typing(event.target)) return;
  const keys = document.querySelector("[data-keys]");
  if (event.key === "?" && keys) { keys.open = !keys.open; keys.scrollIntoView({ block: "nearest" }); }
  else if (event.key === "o") evidence();
  else {
    const one = [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === event.key);
    if (!one) return;
    press(one);
  }
  event.preventDefault();
});

// In the reason, Enter does what was asked for before it: nothing is decided by an accident of order.
for (const button of document.querySelectorAll("[data-reason]")) {
  button.addEventListener("click", (event) => {
    const why = reason(button);
    if (why && !why.value.trim()) { event.preventDefault(); asked = button; why.focus(); }
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !asked || event.target !== reason(asked) || !event.target.value.trim()) return;
  event.preventDefault();
  asked.form.requestSubmit(asked);
});

// --- the preview of an edit ------------------------------------------------------------------------------------------

const form = document.querySelector("[data-edit]");
if (form) {
  const place = form.querySelector("[data-place=preview]");
  const trouble = form.querySelector("[data-trouble]");
  const button = form.querySelector("[data-preview-button]");
  let timer = 0;
  let turn = 0; // only the newest answer is shown

  const look = async () => {
    const mine = ++turn;
    button.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.dataset.preview, { method: "POST", body: new FormData(form), headers: { Accept: "text/html" } });
      const words = await answer.text();
      if (mine !== turn) return;
      trouble.hidden = answer.ok && !answer.redirected;
      if (answer.ok && !answer.redirected) place.innerHTML = words;
    } catch {
      if (mine === turn) trouble.hidden = false;
    } finally {
      if (mine === turn) button.removeAttribute("aria-busy");
    }
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(look, 300); };

  form.addEventListener("input", (event) => {
    if (event.target.matches("[data-own]")) {
      const own = event.target.closest("fieldset").querySelector("input[type=radio][value=own]");
      if (own) own.checked = true;
    }
    if (event.target.name !== "reason") soon();
  });
  form.addEventListener("change", (event) => { if (event.target.name !== "reason") soon(); });
  button.addEventListener("click", (event) => { event.preventDefault(); clearTimeout(timer); look(); });
}
