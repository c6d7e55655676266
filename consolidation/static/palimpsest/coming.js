// How far a plan is: asked once a second, and on to the plan when it is there. Without this, "Look again" does the same.
const panel = document.querySelector("[data-coming]");
if (panel) {
  const said = panel.querySelector("[data-said]");
  const bar = panel.querySelector("[data-bar]");
  const count = panel.querySelector("[data-count]");
  const look = async () => {
    let told;
    try {
      const answer = await fetch(panel.dataset.coming, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(String(answer.status));
      told = await answer.json();
    } catch {
      said.textContent = "The server does not answer. This page asks again.";
      setTimeout(look, 5000);
      return;
    }
    if (told.plan) { location.assign(told.plan); return; }
    if (said.textContent !== told.said) said.textContent = told.said;
    bar.value = told.done;
    count.textContent = `${told.done} of ${told.total}`;
    if (told.state === "failed") { said.classList.add("bad"); return; }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}
