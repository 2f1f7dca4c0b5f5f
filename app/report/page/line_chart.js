// A chart of lines over steps: raw line faint behind the smoothed one, values of all lines under the pointer.
const W = 400, H = 210, L = 52, R = 10, T = 8, B = 24;

// Exponential, corrected for its start, as TensorBoard smooths.
function smoothed(line, weight) {
  let sum = 0, total = 0;
  return line.map(([x, , step, y]) => {
    sum = weight * sum + (1 - weight) * y;
    total = weight * total + (1 - weight);
    return [x, sum / total, step];
  });
}

// At most two points (the lowest and the highest) of every column of the drawing: as it looks with all of them.
function thinned(line, X) {
  if (line.length <= 2 * W) return line;
  const kept = [];
  for (let i = 0; i < line.length;) {
    const column = Math.round(X(line[i][0]));
    let low = line[i], high = line[i];
    for (; i < line.length && Math.round(X(line[i][0])) === column; i++) {
      if (line[i][1] < low[1]) low = line[i];
      if (line[i][1] > high[1]) high = line[i];
    }
    kept.push(...(low === high ? [low] : low[0] < high[0] ? [low, high] : [high, low]));
  }
  return kept;
}

// Round numbers from `from` to `to`, about five.
function ticks(from, to) {
  const rough = (to - from) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= rough * 0.999);
  const list = [];
  for (let i = Math.ceil(from / step - 1e-6); i * step <= to + step * 1e-6; i++) list.push(i * step);
  return list;
}
// Powers of ten; within a few of them round numbers, as exponents.
function logTicks(from, to) {
  if (to - from < 1.5) return ticks(10 ** from, 10 ** to).filter(y => y > 0).map(Math.log10);
  const stride = Math.ceil((to - from) / 5), list = [];
  for (let e = Math.ceil(from); e <= to; e += stride) list.push(e);
  return list;
}

function extent(numbers) {
  let low = Infinity, high = -Infinity;
  for (const n of numbers) {
    if (n < low) low = n;
    if (n > high) high = n;
  }
  return [low, high];
}

// The same without the hundredth part at each end, unless outliers are asked for.
function bulk(numbers) {
  if (view.outliers || numbers.length < 50) return extent(numbers);
  const sorted = Float64Array.from(numbers).sort(), cut = Math.ceil(0.01 * sorted.length);
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}

// Axes and scales of an svg; y in the drawn unit (log10 where `log`).
function axes(svg, [x0, x1], [y0, y1], log) {
  if (x0 === x1) x1 = x0 + 1;
  if (!(y1 - y0 > 1e-9 * Math.max(Math.abs(y0), Math.abs(y1)))) {
    const half = Math.abs(y0) / 2 || 0.5;
    y0 -= half;
    y1 += half;
  } else {
    const margin = 0.04 * (y1 - y0);
    y1 += margin;
    if (log || y0 < 0 || y0 > margin) y0 -= margin;
  }
  const X = x => L + (x - x0) / (x1 - x0) * (W - L - R),
        Y = y => T + (y1 - Math.max(y0, Math.min(y1, y))) / (y1 - y0) * (H - T - B);
  for (const y of (log ? logTicks : ticks)(y0, y1)) {
    svg.append(
      node("line", {class: "grid", x1: L, x2: W - R, y1: Y(y), y2: Y(y)}),
      node("text", {x: L - 6, y: Y(y) + 4, "text-anchor": "end"}, tickText(log ? 10 ** y : y)));
  }
  for (const x of ticks(x0, x1)) {
    if (view.axis === "step" && !Number.isInteger(x)) continue;
    svg.append(node("text", {x: X(x), y: H - 7, "text-anchor": X(x) > W - 24 ? "end" : "middle"}, tickText(x)));
  }
  return {X, Y};
}

const charts = [];  // drawn, for the controls above and the common crosshair

// Validations are few, and measured on many samples: they are drawn as they are.
function withPoints(line) {
  const raw = points(line.run, line.name);
  const smooths = view.smoothing > 0 && raw.length > 5 && !isValidation(line.name);
  return {...line, raw, smooth: smooths ? smoothed(raw, view.smoothing) : null};
}

function drawLines(svg, lines, X, Y) {
  const path = (line, attributes) => {
    const ends = thinned(line, X).map(p => X(p[0]).toFixed(1) + " " + Y(p[1]).toFixed(1));
    return node("path", {...attributes, d: "M" + ends.join("L") + (ends.length === 1 ? "h0" : "")});
  };
  const dashes = line => line.dash ? {"stroke-dasharray": "5 3"} : {};
  for (const l of lines) {
    const dot = l.raw.length === 1 ? {"style": "stroke-width:5;stroke-linecap:round"} : {};
    svg.append(path(l.raw, l.smooth ? {stroke: l.fill, class: "raw"} : {stroke: l.fill, ...dashes(l), ...dot}));
  }
  for (const l of lines) {
    if (l.smooth) svg.append(path(l.smooth, {stroke: l.fill, ...dashes(l)}));
  }
}

// lines: [{run, name, label, fill, dash}]; draws into a card of its own, again whenever the view changes.
function lineChart(title, lines) {
  const svg = node("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title});
  const last = node("span", {class: "soft"}),
        button = node("button", {"aria-pressed": "false", title: "logarithmic y axis"}, "log");
  const card = node(
    "div", {class: "card", "data-metric": lines[0].name},
    node("div", {class: "chart_head"}, node("h3", {}, title), last, ...explained(lines[0].name), button), svg);
  const labels = new Map(lines.map(l => [l.label, l]));
  if (labels.size > 1 && runs.length === 1) card.append(...[...labels.values()].map(l => key(l.fill, l.label)));
  const chart = {card, svg, drawn: [], log: false};

  chart.draw = () => {
    svg.replaceChildren();
    chart.cross = null;
    chart.drawn = lines.filter(l => !view.hidden.has(l.run) && points(l.run, l.name).length).map(withPoints);
    const all = chart.drawn.flatMap(l => l.raw), positive = all.length > 0 && all.every(p => p[1] > 0);
    button.hidden = !positive;
    if (!all.length) return;
    const log = chart.log && positive, unit = log ? Math.log10 : y => y;
    const {X, Y} = axes(svg, extent(all.map(p => p[0])), bulk(all.map(p => unit(p[1]))), log);
    drawLines(svg, chart.drawn, X, y => Y(unit(y)));
    chart.X = X;
    chart.cross = node("line", {class: "cross", y1: T, y2: H - B, x1: -9, x2: -9});
    svg.append(chart.cross);
    // As the strong line ends: one odd last step is not what the run came to.
    const first = chart.drawn[0].smooth || chart.drawn[0].raw;
    last.textContent = runs.length === 1 ? short(first[first.length - 1][1]) : "";
  };
  button.onclick = () => {
    chart.log = !chart.log;
    button.setAttribute("aria-pressed", chart.log);
    chart.draw();
  };
  svg.addEventListener("pointermove", event => hover(chart, event));
  svg.addEventListener("pointerleave", () => {
    hideTip();
    for (const other of charts) other.cross?.setAttribute("transform", "translate(-99)");
  });
  charts.push(chart);
  drawWhenSeen.observe(card);
  return card;
}

// The point nearest to x of a line ordered by x.
function nearest(line, x) {
  let low = 0, high = line.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line[middle][0] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && x - line[low - 1][0] < line[low][0] - x ? low - 1 : low;
}

function hover(chart, event) {
  if (!chart.drawn.length) return;
  const box = chart.svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * W;
  const all = chart.drawn.map(l => l.raw[nearest(l.raw, at_x(chart, at))]);
  const here = all.reduce((best, p) => Math.abs(chart.X(p[0]) - at) < Math.abs(chart.X(best[0]) - at) ? p : best);
  for (const other of charts) {
    if (other.cross) other.cross.setAttribute("transform", `translate(${other.X(here[0]) + 9})`);
  }
  const place = view.axis === "step" ? `step ${here[0]}` : `${here[0].toFixed(3)} hours`;
  const lines = [tipLine(place, chart.drawn.some(l => l.smooth) ? "value (smoothed)" : "")];
  for (const l of chart.drawn) {
    const i = nearest(l.raw, here[0]), p = l.raw[i];
    const where = view.axis === "step" && p[0] !== here[0] ? ` (step ${p[2]})` : "";
    const smooth = l.smooth ? ` (${short(l.smooth[i][1])})` : "";
    lines.push(
      tipLine((runs.length > 1 ? `${l.run.label} ${l.extra || ""}` : l.label) + where, short(p[1]) + smooth, l.fill));
  }
  showTip(event, ...lines);
}
function at_x(chart, pixel) {  // the x value of a pixel: X is linear
  const zero = chart.X(0), unit = chart.X(1) - zero;
  return (pixel - zero) / unit;
}

// Charts are drawn when they come near the window: a run has a hundred metrics.
const drawWhenSeen = new IntersectionObserver(entries => {
  for (const entry of entries) {
    const chart = charts.find(c => c.card === entry.target);
    if (!entry.isIntersecting || !chart) continue;
    chart.seen = true;
    chart.draw();
    drawWhenSeen.unobserve(entry.target);
  }
}, {rootMargin: "300px"});
const redraw = () => charts.forEach(chart => chart.seen && chart.draw());
