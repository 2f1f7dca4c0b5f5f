// Where the time of a step goes: the parts of timing/train/total_step_time stacked over steps, and their sums.
const timing = "timing/train/", whole = timing + "total_step_time", mostColumns = 120;

// A part is "generation", or "prepare_for_generation/total" of a part that has parts of its own.
const isPart = name =>
  name.startsWith(timing) && name !== whole && (!name.slice(timing.length).includes("/") || name.endsWith("/total"));
const partName = name => name.slice(timing.length).replace(/\/total$/, "");

function partsOf(run) {
  const sum = name => values(run, name).reduce((s, v) => s + v, 0);
  const parts = Object.keys(run.series)
                  .filter(isPart)
                  .map(name => ({name, label: partName(name), seconds: sum(name), count: values(run, name).length}));
  parts.sort((a, b) => b.seconds - a.seconds);
  parts.forEach((part, index) => {
    part.fill = index < 7 ? colour(index) : colour(7);
  });
  return parts;
}

// Means over columns of neighbouring steps: [{from, to, total, parts: [seconds], rest}].
function timeColumns(run, parts) {
  const rows = run.steps.map((_, row) => row).filter(row => (run.series[whole] || [])[row] > 0);
  const count = Math.min(rows.length, mostColumns), edge = i => Math.floor(i * rows.length / count), columns = [];
  for (let i = 0; i < count; i++) {
    const group = rows.slice(edge(i), edge(i + 1)), of = name => mean(group.map(row => run.series[name][row] || 0));
    const column = {
      from: run.steps[group[0]],
      to: run.steps[group[group.length - 1]],
      total: of(whole),
      parts: parts.map(p => of(p.name))
    };
    column.rest = Math.max(0, column.total - column.parts.reduce((s, v) => s + v, 0));
    columns.push(column);
  }
  return columns;
}

function timeChart(run, parts) {
  const columns = timeColumns(run, parts), w = roomIn("time"), h = 240, left = 46, bottom = 22;
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
    column.parts.forEach((seconds, part) => {
      d[part] += box(seconds);
    });
    rest += box(column.rest);
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
      ...parts.map((p, k) => tipLine(p.label, duration(column.parts[k]), p.fill))
        .filter((_, k) => column.parts[k] > 0.001 * column.total),
      tipLine("rest", duration(column.rest), "var(--line)"));
  });
  svg.addEventListener("pointerleave", hideTip);
  return svg;
}

// Names are long: a narrow screen breaks them after an underscore.
const breakable = name => name.split(/(?<=_)/).flatMap((word, i) => i ? [node("wbr"), word] : [word]);

function timeTable(run, parts, total) {
  const steps = values(run, whole).length, table = node("table");
  const row = (kind, label, seconds, count) => node(
    "tr", {class: kind}, node("td", {}, ...label), node("td", {class: "number"}, percent(seconds / total)),
    node("td", {class: "number"}, duration(seconds)),
    node("td", {class: "number"}, duration(seconds / Math.max(1, count)) + (count < steps ? ` × ${count}` : "")));
  table.append(
    node("tr", {}, node("th", {}, "part"), ...["share", "sum", "a step"].map(h => node("th", {class: "number"}, h))));
  table.append(row("", breakable("total_step_time"), total, steps));
  let known = 0;
  for (const part of parts) {
    known += part.seconds;
    table.append(row("", [swatch(part.fill), ...breakable(part.label)], part.seconds, part.count));
    for (const name of Object.keys(run.series)) {
      if (name.startsWith(timing + part.label + "/") && name !== part.name) {
        const all = values(run, name);
        table.append(
          row(
            "nested", breakable(name.slice((timing + part.label).length + 1)), all.reduce((s, v) => s + v, 0),
            all.length));
      }
    }
  }
  if (total > known) table.append(row("", [swatch("var(--line)"), "rest"], total - known, steps));
  return table;
}

function drawTime(run) {
  const parts = partsOf(run), total = values(run, whole).reduce((s, v) => s + v, 0);
  if (!total) return find("time").replaceChildren("No timings were logged.");
  find("time").replaceChildren(
    timeChart(run, parts),
    node("div", {class: "scroll", style: "border:0;margin-top:10px"}, timeTable(run, parts, total)));
}
