// What every part of the page uses: the data, nodes, numbers, colours, the tip under the pointer.
const { runs, compared } = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const view = {
  smoothing: runs[0].steps.length < 60 ? 0.6 : 0.8,
  axis: "step",
  outliers: true,
  hidden: new Set(),
  run: runs[0]
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
const roomIn = id => Math.max(280, find(id).clientWidth - 30);

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
  if (seconds < 0.1) return +(1000 * seconds).toPrecision(2) + " ms";
  if (seconds < 90) return seconds.toFixed(seconds < 10 ? 2 : 1) + " s";
  return seconds < 5400 ? (seconds / 60).toFixed(1) + " min" : (seconds / 3600).toFixed(2) + " h";
}
const percent = share => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";
const mean = values => values.reduce((sum, v) => sum + v, 0) / values.length;

// [[x, value, step]] of a metric, without the steps that lack it; x is the step or the hours since the run's first
// line.
function points(run, name) {
  const values = run.series[name] || [], begin = run.times[0], found = [];
  values.forEach((value, row) => {
    const x = view.axis === "step" ? run.steps[row] : run.times[row] === null ? NaN : (run.times[row] - begin) / 3600;
    if (value !== null && isFinite(x)) found.push([x, value, run.steps[row]]);
  });
  return found;
}
const values = (run, name) => (run.series[name] || []).filter(v => v !== null);
const isValidation = name => name.startsWith("validation");  // "validation/" and "validation-default/"

// Seconds from the begin of the first step to the end of the last: a line is written when its step ends.
function elapsed(run) {
  const times = run.times.filter(t => t !== null);
  return times.length ? times[times.length - 1] - times[0] + ((run.series[whole] || [])[0] || 0) : NaN;
}

// Mean of the last ten; of a validation metric the last.
function final(run, name) {
  const all = values(run, name);
  return all.length ? mean(isValidation(name) ? all.slice(-1) : all.slice(-10)) : NaN;
}

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
