// How long responses are: one ridge a logged step, the first at the top.
function drawLengths(run, card) {
  const steps = run.lengths.filter(l => l.values.length);
  card.replaceChildren(node("div", {class: "soft"}, "none was logged"));
  if (!steps.length) return;
  const longest = Math.max(...steps.flatMap(l => l.values)), shortest = Math.min(...steps.flatMap(l => l.values));
  const width = Math.max(1, Math.ceil((longest - shortest + 1) / 60)),
        bins = Math.floor((longest - shortest) / width) + 1;
  const histograms = steps.map(l => {
    const shares = new Array(bins).fill(0);
    for (const v of l.values) shares[Math.floor((v - shortest) / width)] += 1 / l.values.length;
    return shares;
  });
  // Peaks may reach over the ridge above; a few wide bars would hide it.
  const w = roomIn(card), left = 64, right = 20, row = Math.max(18, Math.min(34, 480 / steps.length)),
        tall = row * (bins < 10 ? 0.9 : 1.7), h = tall + row * steps.length + 22;
  const top = Math.max(...histograms.flat());
  const svg = node("svg", {viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "histograms of response lengths"});
  const X = i => left + i / bins * (w - left - right);
  for (const tick of ticks(shortest, Math.max(longest, shortest + 1)).filter(Number.isInteger)) {
    const x = X((tick - shortest + 0.5) / width);
    svg.append(
      node("line", {class: "grid", x1: x, x2: x, y1: 4, y2: h - 20}),
      node("text", {x, y: h - 5, "text-anchor": "middle"}, tick));
  }
  histograms.forEach((shares, k) => {
    const base = tall + row * k, share = steps.length > 1 ? k / (steps.length - 1) : 1;
    let d = `M${X(0)} ${base}`;
    shares.forEach((s, i) => {
      const y = base - s / top * tall;
      d += `L${(X(i) + 0.5).toFixed(1)} ${y.toFixed(1)}H${(X(i + 1) - 0.5).toFixed(1)}`;
    });
    d += `L${X(bins)} ${base}Z`;
    svg.append(node(
      "path",
      {d, style: `fill:rgba(var(--cold),${(0.25 + 0.4 * share).toFixed(2)});stroke:rgb(var(--cold));stroke-width:1`}));
    svg.append(node("text", {x: left - 8, y: base, "text-anchor": "end"}, "step " + steps[k].step));
  });
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), scale = w / box.width;
    const k = Math.max(0, Math.min(steps.length - 1, Math.ceil(((event.clientY - box.top) * scale - tall) / row)));
    const i = Math.max(
      0, Math.min(bins - 1, Math.floor(((event.clientX - box.left) * scale - left) / (w - left - right) * bins)));
    const sorted = [...steps[k].values].sort((a, b) => a - b), from = shortest + i * width,
          to = Math.min(longest, from + width - 1);
    showTip(
      event, tipLine("step", String(steps[k].step)),
      tipLine(from === to ? `${from} tokens` : `${from} to ${to} tokens`, percent(histograms[k][i])),
      tipLine("mean", short(mean(sorted))), tipLine("median", String(sorted[sorted.length >> 1])),
      tipLine("longest", String(sorted[sorted.length - 1])),
      ...(steps[k].first ? [tipLine("of the step's responses the first", String(steps[k].first))] : []));
  });
  svg.addEventListener("pointerleave", hideTip);
  // The log of an older version says no lengths of its own, and may be too long to be read to its end.
  const whose =
    steps.some(l => l.first) ? "responses at the beginning of a step's log, which is long" : "the step's responses";
  card.replaceChildren(node("div", {class: "soft"}, `tokens that the model wrote, share of ${whose}`), svg);
}
