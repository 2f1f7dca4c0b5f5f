function tiles(run) {
  find("tiles").hidden = false;
  const tile = (label, value) =>
    find("tiles").append(node("div", {class: "tile"}, node("b", {}, value), node("span", {class: "soft"}, label)));
  const first = name => mean(values(run, name).slice(0, 10)), brief = x => short(+x.toPrecision(3)),
        has = name => values(run, name).length > 0;
  const change = name => has(name) ? `${brief(first(name))} → ${brief(final(run, name))}` : "–";
  tile("reward, first and last 10 steps", change("train/reward"));
  if (has("validation/accuracy")) {
    const all = values(run, "validation/accuracy");
    tile(`validation accuracy, best ${short(Math.max(...all))}`, `${brief(all[0])} → ${brief(all[all.length - 1])}`);
  }
  tile("response length", change("train/mean_gen_tokens_per_sample"));
  tile(
    "largest token_mult_prob_error",
    has("train/token_mult_prob_error") ? short(Math.max(...values(run, "train/token_mult_prob_error"))) : "–");
  tile("a step, mean", has(whole) ? duration(mean(values(run, whole))) : "–");
}

// Parts that show one run at a time.
function drawRun(run) {
  view.run = run;
  drawTime(run);
  drawLengths(run);
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
const finished = runs[0].times.filter(t => t !== null), span = finished[finished.length - 1] - finished[0];
find("subtitle").textContent = runs.length > 1 ? names :
                                                 `${runs[0].steps[runs[0].steps.length - 1]} steps` +
    (finished.length ?
       ` in ${duration(span)}, last line ${new Date(1000 * finished[finished.length - 1]).toLocaleString()}` :
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
