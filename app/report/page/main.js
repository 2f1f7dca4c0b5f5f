// What a run came to at a glance: a tile for each thing that it measured.
function drawTiles(run) {
  const made = [];
  const tile = (label, value) =>
    made.push(node("div", {class: "tile"}, node("b", {}, value), node("span", {class: "soft"}, label)));
  const brief = x => short(+x.toPrecision(3));
  const change = (label, name) =>
    has(run, name) && tile(label, `${brief(total(run, name).first)} → ${brief(total(run, name).last)}`);
  const validation = (label, name, best) => {
    const all = total(run, name);
    if (!all) return;
    if (all.count === 1) return tile(`${label}, step ${run.steps[all.to[0]]}`, brief(all.to[1]));
    const when = `step ${run.steps[all.from[0]]} to ${run.steps[all.to[0]]}`;
    tile(`${label}, best ${brief(best(all))}, ${when}`, `${brief(all.from[1])} → ${brief(all.to[1])}`);
  };
  for (const name of ["validation/accuracy", "validation-default/accuracy"])
    validation("validation accuracy", name, all => all.high);
  change("reward, first and last 10 steps", "train/reward");
  // Of a policy gradient the loss says little.
  if (!has(run, "train/reward")) change("loss, first and last 10 steps", "train/loss");
  for (const name of ["validation/val_loss", "validation-default/loss"])
    validation("validation loss", name, all => all.low);
  change("response length", "train/mean_gen_tokens_per_sample");
  if (has(run, "train/token_mult_prob_error"))
    tile("largest token_mult_prob_error", short(total(run, "train/token_mult_prob_error").high));
  if (has(run, "performance/tokens_per_sec"))
    tile(
      "tokens per second, last 10 steps",
      (+final(run, "performance/tokens_per_sec").toPrecision(3)).toLocaleString());
  if (has(run, whole)) tile("a step, mean", duration(total(run, whole).sum / total(run, whole).count));
  find("tiles").hidden = !made.length;
  find("tiles").replaceChildren(...made);
}

// "80 steps"; of a resumed run whose beginning is not here "steps 81 to 90". A line of validation alone, before the
// first step, is none.
function stepsOf(run) {
  const timed = total(run, whole);
  const from = run.steps[timed ? timed.from[0] : 0], to = run.steps[timed ? timed.to[0] : run.steps.length - 1];
  if (from > 1) return from === to ? `step ${to}` : `steps ${from} to ${to}`;
  return to === 1 ? "1 step" : `${to} steps`;
}

function subtitleOf(run) {
  const finished = run.times.slice(-100).filter(t => t !== null);
  const when = finished.length ? ` in ${duration(elapsed(run))}, last line ` +
      new Date(1000 * finished[finished.length - 1]).toLocaleString() :
                                 "";
  return stepsOf(run) + when + (run.continues.length ? `; goes on from ${run.continues.join(", ")}` : "");
}

// Over what is shown of several runs: whose it is.
const heading = run =>
  runs.length > 1 ? [node("h3", {class: "run"}, swatch(colour(runs.indexOf(run))), run.label)] : [];

// A card for each run that is shown, side by side where there is room.
function columns(id, draw) {
  const cards = view.shown.map(() => node("div", {class: "card"}));
  find(id).replaceChildren(...view.shown.map((run, i) => node("div", {}, ...heading(run), cards[i])));
  view.shown.forEach((run, i) => draw(run, cards[i]));
}

// What shows one run at a time, or two.
function drawShown() {
  columns("time", drawTime);
  find("lengths_part").hidden = view.shown.every(run => !run.lengths.length);
  if (!find("lengths_part").hidden) columns("lengths", drawLengths);
  find("samples_part").hidden = view.shown.every(run => !run.samples.length);
  offerSteps();
  drawSamples();
  find("config").textContent = view.shown[0].config;
}

function drawHead() {
  runs.forEach((run, i) => {
    run.label =
      runs.length > 1 && runs.some((other, k) => k !== i && other.name === run.name) ? run.directory : run.name;
  });
  const names = runs.map(run => run.label).join(", ");
  document.title = `${names} – Hexad`;
  find("title").textContent = runs.length > 1 ? `${runs.length} runs` : names;
  find("subtitle").textContent = runs.length > 1 ? names : subtitleOf(runs[0]);
  if (runs.length > 1)
    drawComparison();
  else
    drawTiles(runs[0]);
}

function chooseRuns() {
  if (runs.length === 1) return;
  find("run_choice").hidden = false;
  const offer = (id, chosen, ...more) => {
    find(id).replaceChildren(...more, ...runs.map((run, i) => node("option", {value: i}, run.label)));
    find(id).value = chosen;
  };
  offer("run", 0);
  offer("beside", 1, node("option", {value: ""}, "none"));
  for (const id of ["run", "beside"]) {
    find(id).addEventListener("change", () => {
      view.shown = [...new Set([find("run").value, find("beside").value])].filter(v => v !== "").map(v => runs[+v]);
      drawShown();
    });
  }
}

drawHead();
offerQuestions();
controls();
drawCurves();
sampleControls();
chooseRuns();
drawShown();

let resized = 0, width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;  // a telephone's address bar
  width = innerWidth;
  clearTimeout(resized);
  resized = setTimeout(drawShown, 150);
});
addEventListener("beforeprint", () => charts.forEach(chart => {
  chart.seen = true;
  chart.draw();
}));
