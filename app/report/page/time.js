// Where the time of a step goes: the parts of timing/train/total_step_time stacked over steps, and their sums.
const timing = "timing/train/", whole = timing + "total_step_time";

const partName = name => name.slice(timing.length).replace(/\/total$/, "");

function partsOf(run) {
  return run.time.parts.map((name, index) => ({
                              name,
                              label: partName(name),
                              seconds: total(run, name)?.sum ?? 0,
                              count: total(run, name)?.count ?? 0,
                              fill: colour(Math.min(index, 7))
                            }));
}

// What no part of a column covers.
const restOf = column => Math.max(0, column.total - plus(column.seconds));

function timeChart(run, parts, w) {
  const columns = run.time.columns, h = 240, left = 46, bottom = 22;
  const svg = node("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "step time by part"});
  const top = Math.max(...columns.map(c => c.total)) * 1.04, Y = s => (h - bottom) * (1 - s / top) + 4;
  const X = i => left + i / columns.length * (w - left);
  for (const tick of ticks(0, top)) {
    svg.append(
      node("line", {class: "grid", x1: left, x2: w, y1: Y(tick), y2: Y(tick)}),
      node("text", {x: left - 6, y: Y(tick) + 4, "text-anchor": "end"}, tickText(tick) + " s"));
  }
  const d = parts.map(() => ""), gap = columns.length > 80 ? 0.3 : 1.5;
  let rest = "";
  columns.forEach((column, i) => {
    let base = 0;
    const box = seconds => {
      const text = `M${X(i).toFixed(1)} ${Y(base).toFixed(1)}V${Y(base + seconds).toFixed(1)}H${
        (X(i + 1) - gap).toFixed(1)}V${Y(base).toFixed(1)}Z`;
      base += seconds;
      return text;
    };
    column.seconds.forEach((seconds, part) => {
      d[part] += box(seconds);
    });
    rest += box(restOf(column));
  });
  parts.forEach((part, i) => svg.append(node("path", {class: "area", d: d[i], style: `fill:${part.fill}`})));
  svg.append(node("path", {class: "area", d: rest, style: "fill:var(--line)"}));
  const count = Math.min(columns.length, 6);
  for (let k = 0; k < count; k++) {
    const i = count === 1 ? 0 : Math.round(k * (columns.length - 1) / (count - 1));
    svg.append(node(
      "text",
      {x: (X(i) + X(i + 1)) / 2,
       y: h - 4,
       "text-anchor": k === 0 ? "start" :
         k === count - 1      ? "end" :
                                "middle"},
      k === count - 1 ? columns[i].to : columns[i].from));
  }
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(),
          i = Math.floor(((event.clientX - box.left) / box.width * w - left) / (w - left) * columns.length);
    const column = columns[Math.max(0, Math.min(columns.length - 1, i))];
    const steps = column.from === column.to ? `step ${column.from}` : `steps ${column.from} to ${column.to}, mean`;
    showTip(
      event, tipLine(steps, duration(column.total)),
      ...parts.map((p, k) => tipLine(p.label, duration(column.seconds[k]), p.fill))
        .filter((_, k) => column.seconds[k] > 0.001 * column.total),
      tipLine("rest", duration(restOf(column)), "var(--line)"));
  });
  svg.addEventListener("pointerleave", hideTip);
  return svg;
}

// Names are long: a narrow screen breaks them after an underscore.
const breakable = name => name.split(/(?<=_)/).flatMap((word, i) => i ? [node("wbr"), word] : [word]);

function timeTable(run, parts, sum) {
  const steps = total(run, whole).count, table = node("table");
  const row = (kind, label, seconds, count) => node(
    "tr", {class: kind}, node("td", {}, ...label), node("td", {class: "number"}, percent(seconds / sum)),
    node("td", {class: "number"}, duration(seconds)),
    node("td", {class: "number"}, duration(seconds / Math.max(1, count)) + (count < steps ? ` × ${count}` : "")));
  table.append(
    node("tr", {}, node("th", {}, "part"), ...["share", "sum", "a step"].map(h => node("th", {class: "number"}, h))));
  table.append(row("", breakable("total_step_time"), sum, steps));
  for (const part of parts) {
    table.append(row("", [swatch(part.fill), ...breakable(part.label)], part.seconds, part.count));
    for (const [name, of] of Object.entries(run.summary)) {
      const inside = timing + part.label + "/";
      if (of && name.startsWith(inside) && name !== part.name)
        table.append(row("nested", breakable(name.slice(inside.length)), of.sum, of.count));
    }
  }
  const rest = sum - plus(parts.map(part => part.seconds));
  if (rest > 1e-4 * sum) table.append(row("", [swatch("var(--line)"), "rest"], rest, steps));
  return table;
}

function drawTime(run, card) {
  if (!run.time.columns.length) return card.replaceChildren("No timings were logged.");
  const parts = partsOf(run);
  card.replaceChildren(
    timeChart(run, parts, roomIn(card)),
    node("div", {class: "scroll", style: "border:0;margin-top:10px"}, timeTable(run, parts, total(run, whole).sum)));
}
