// What a run came to at a glance: a tile for each thing that it measured.
function tiles(run) {
  const tile = (label, value) => {
    find("tiles").hidden = false;
    find("tiles").append(node("div", {class: "tile"}, node("b", {}, value), node("span", {class: "soft"}, label)));
  };
  const first = name => mean(values(run, name).slice(0, 10)), brief = x => short(+x.toPrecision(3)),
        has = name => values(run, name).length > 0;
  const change = (label, name) => has(name) && tile(label, `${brief(first(name))} → ${brief(final(run, name))}`);
  const validation = (label, name, best) => {
    const all = values(run, name), steps = run.steps.filter((_, row) => (run.series[name] || [])[row] !== null);
    if (!all.length) return;
    const when = all.length > 1 ? `, step ${steps[0]} to ${steps[all.length - 1]}` : "";
    tile(`${label}, best ${brief(best(...all))}${when}`, `${brief(all[0])} → ${brief(all[all.length - 1])}`);
  };
  change("reward, first and last 10 steps", "train/reward");
  // Of a policy gradient the loss says little.
  if (!has("train/reward")) change("loss, first and last 10 steps", "train/loss");
  for (const name of ["validation/val_loss", "validation-default/loss"]) validation("validation loss", name, Math.min);
  for (const name of ["validation/accuracy", "validation-default/accuracy"])
    validation("validation accuracy", name, Math.max);
  change("response length", "train/mean_gen_tokens_per_sample");
  if (has("train/token_mult_prob_error"))
    tile("largest token_mult_prob_error", short(Math.max(...values(run, "train/token_mult_prob_error"))));
  if (has(whole)) tile("a step, mean", duration(mean(values(run, whole))));
}

// "80 steps"; of a resumed run "steps 81 to 90". A line of validation alone, before the first step, is none.
function stepsOf(run) {
  const timed = run.steps.filter((_, row) => typeof (run.series[whole] || [])[row] === "number");
  const steps = timed.length ? timed : run.steps, from = steps[0], to = steps[steps.length - 1];
  if (from > 1) return from === to ? `step ${to}` : `steps ${from} to ${to}`;
  return to === 1 ? "1 step" : `${to} steps`;
}

// Parts that show one run at a time.
function drawRun(run) {
  view.run = run;
  drawTime(run);
  drawLengths(run);
  find("samples_part").hidden = !run.samples.length;
  offerSteps(run);
  drawSamples();
  find("config").textContent = run.config;
}

runs.forEach((run, i) => {
  run.label = runs.length > 1 && runs.some((other, k) => k !== i && other.name === run.name) ? run.directory : run.name;
});
const names = runs.map(run => run.label).join(", ");
document.title = `${names} – Hexad`;
find("title").textContent = runs.length > 1 ? `${runs.length} runs` : names;
const finished = runs[0].times.filter(t => t !== null);
find("subtitle").textContent = runs.length > 1 ? names :
                                                 stepsOf(runs[0]) +
    (finished.length ?
       ` in ${duration(elapsed(runs[0]))}, last line ` +
         `${new Date(1000 * finished[finished.length - 1]).toLocaleString()}` :
       "");
controls();
if (runs.length > 1)
  drawComparison();
else
  tiles(runs[0]);
drawCurves();
sampleControls();
if (runs.length > 1) {
  find("run_choice").hidden = false;
  find("run").replaceChildren(...runs.map((run, i) => node("option", {value: i}, run.label)));
  find("run").addEventListener("change", () => drawRun(runs[+find("run").value]));
}
drawRun(runs[0]);

let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    drawTime(view.run);
    drawLengths(view.run);
  }, 150);
});
addEventListener("beforeprint", () => charts.forEach(chart => {
  chart.seen = true;
  chart.draw();
}));
