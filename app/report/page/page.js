// What every part of the page uses: the data, nodes, numbers, colours, the tip under the pointer.
const { runs, compared } = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const view = {
  smoothing: runs[0].steps.length < 60 ? 0.6 : 0.8,
  axis: "step",
  outliers: true,
  hidden: new Set(),
  shown: runs.slice(0, 2)  // side by side, where one run at a time is shown
};

const svgTags = new Set(["svg", "path", "line", "text", "rect"]);
function node(tag, attributes = {}, ...children) {
  const made =
    svgTags.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);  // text stays text, whatever it holds
  return made;
}

// Width of a drawing that fills a card, in pixels.
const roomIn = card => Math.max(280, card.clientWidth - 30);

const colour = index => `var(--c${index % 8})`;
function swatch(fill) {
  const box = node("i", {class: "swatch"});
  box.style.background = fill;
  return box;
}
const key = (fill, ...text) => node("span", {class: "key"}, swatch(fill), ...text);

function short(x) {
  if (typeof x !== "number" || !isFinite(x)) return "–";
  if (x === 0) return "0";
  const rounded = +x.toPrecision(4);  // a smoothed 0.001 may lie just below it
  return Math.abs(rounded) >= 1e5 || Math.abs(rounded) < 1e-3 ? x.toExponential(2) : String(rounded);
}
const tickText = x =>
  Math.abs(x) >= 1e5 || x !== 0 && Math.abs(x) < 1e-3 ? (+x.toPrecision(3)).toExponential() : String(+x.toPrecision(6));
function duration(seconds) {
  if (!isFinite(seconds)) return "–";
  if (seconds < 0.1) return +(1000 * seconds).toPrecision(2) + " ms";
  if (seconds < 90) return seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
  return seconds < 5400 ? (seconds / 60).toFixed(1) + " min" : (seconds / 3600).toFixed(2) + " h";
}
const percent = share => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
const mean = values => values.reduce((sum, v) => sum + v, 0) / values.length;
const plus = values => values.reduce((sum, v) => sum + v, 0);

// [row, value, mean] of what the page has of a series: of a long run the extremes of neighbouring steps, and their
// mean.
function entries(run, name) {
  const series = run.series[name] || [];
  if (Array.isArray(series)) return series.flatMap((value, row) => value === null ? [] : [[row, value, value]]);
  return series.rows.map((row, i) => [row, series.values[i], series.means ? series.means[i >> 1] : series.values[i]]);
}

// [[x, value, step, mean]] of a metric, without the steps that lack it; x is the step or the hours of training.
function points(run, name) {
  const found = [];
  for (const [row, value, middle] of entries(run, name)) {
    const x = view.axis === "step" ? run.steps[row] : run.hours[row];
    if (x !== null) found.push([x, value, run.steps[row], middle]);
  }
  return found;
}
// What C++ has counted over all steps: {count, sum, low, high, first, last, from, to} (series.hpp).
const total = (run, name) => run.summary[name] || null;
const has = (run, name) => total(run, name) !== null;
const isValidation = name => name.startsWith("validation");  // "validation/" and "validation-default/"

// Seconds of training.
const elapsed = run => 3600 * Math.max(...run.hours.slice(-100).map(h => h ?? NaN).filter(h => !isNaN(h)));

// Mean of the last ten; of a validation metric the last.
const final = (run, name) => !has(run, name) ? NaN : isValidation(name) ? total(run, name).to[1] :
                                                                         total(run, name).last;

const tip = find("tip");
function showTip(event, ...lines) {
  tip.replaceChildren(...lines);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), gap = 14;
  const left = event.clientX + gap + box.width > innerWidth ? event.clientX - gap - box.width : event.clientX + gap;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, Math.min(event.clientY + gap, innerHeight - box.height - 4)) + "px";
}
const hideTip = () => {
  tip.hidden = true;
};
function tipLine(label, value, fill) {
  const line = node("div", {}, label, node("b", {}, value));
  if (fill) line.prepend(swatch(fill));
  return line;
}
