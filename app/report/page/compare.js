// Several runs: what they came to, and what set them apart.
const runHeads = () => runs.map((run, i) => node("th", {}, swatch(colour(i)), run.label));

function finalTable() {
  const table = node(
    "table", {}, node("tr", {}, node("th", {}, "mean of the last 10 steps; of validation the last"), ...runHeads()));
  const row = (label, of) =>
    table.append(node("tr", {}, node("td", {}, label), ...runs.map(run => node("td", {}, of(run)))));
  row("steps", run => String(run.steps[run.steps.length - 1]));
  row("duration", run => duration(elapsed(run)));
  for (const name of compared.filter(name => runs.some(run => has(run, name))))
    row(name, run => short(final(run, name)));
  return table;
}

function differences() {
  const keys = [...new Set(runs.flatMap(run => Object.keys(run.settings)))].sort();
  return keys.filter(k => runs.some(run => run.settings[k] !== runs[0].settings[k]));
}

function drawComparison() {
  find("compared").hidden = false;
  find("final").replaceChildren(...finalTable().childNodes);
  const keys = differences(), table = node("table", {}, node("tr", {}, node("th", {}, "key"), ...runHeads()));
  for (const k of keys)
    table.append(node("tr", {}, node("td", {}, k), ...runs.map(run => node("td", {}, run.settings[k] ?? "–"))));
  if (!keys.length) table.replaceChildren(node("tr", {}, node("td", {class: "soft"}, "None.")));
  find("differences").replaceChildren(...table.childNodes);
}
