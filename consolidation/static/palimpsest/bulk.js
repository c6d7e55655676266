// How far a decision over many items is, and the address of a view. The pages work without it, by reloading.

const panel = document.querySelector("[data-progress]");
if (panel) {
  const say = (name, value) => { panel.querySelector(`[data-${name}]`).textContent = value; };
  const hint = panel.querySelector("[data-hint]");
  const ask = async () => {
    let pause = 1000;
    try {
      const answer = await fetch(panel.dataset.progress, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      if (found.finished) { location.reload(); return; }
      say("done", found.done);
      say("refused", found.refused);
      say("waiting", found.waiting);
      panel.querySelector("[data-bar]").value = found.done + found.refused;
      hint.textContent = found.trouble ? `The last try ended: ${found.trouble} It is tried again.` : "This page follows it. It goes on only while a worker runs.";
    } catch {
      hint.textContent = "The server could not be asked how far it is. It is asked again.";
      pause = 5000;
    }
    setTimeout(ask, pause);
  };
  setTimeout(ask, 300);
}

const copy = document.querySelector("[data-copy]");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.querySelector("[data-view]").value);
    copy.textContent = "Copied";
  });
}
