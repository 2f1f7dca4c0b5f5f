#include "core/telemetry/report_page.hpp"

namespace hexad::telemetry {

const std::string_view kReportPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hexad run</title>
<style>
:root { --ink: #1c2430; --soft: #667085; --line: #d9dee7; --paper: #ffffff; --back: #f5f6f9; --a: #2f6fde; --b: #d9622b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #333b48; --paper: #1a1f28; --back: #12161d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 32px 0 8px; } .soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-top: 16px; }
.tile, .card { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); gap: 12px; }
.card h3 { font-size: 13px; margin: 0 0 6px; font-weight: 600; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 11px; } .grid { stroke: var(--line); } .raw { opacity: .3; }
.bar { display: flex; height: 22px; border-radius: 5px; overflow: hidden; margin: 6px 0 10px; }
.key { display: inline-block; margin-right: 16px; font-size: 13px; } .key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 12px; font-size: 12.5px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } td, th { text-align: left; padding: 5px 8px; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
</style></head><body><main>
<h1 id="title"></h1><div class="soft" id="subtitle"></div><div class="tiles" id="tiles"></div>
<h2>Curves</h2><div class="charts" id="charts"></div>
<h2>Where the time goes</h2><div class="card" id="time"></div>
<h2>Samples of the last steps</h2><div class="card"><table id="samples"></table></div>
<h2>Configuration</h2><details><summary class="soft">resolved config.yaml</summary><pre id="config"></pre></details>
</main>
<script id="data" type="application/json">@REPORT_DATA@</script>
<script>
"use strict";
const run = JSON.parse(document.getElementById("data").textContent), steps = run.steps;
const el = (tag, attributes, text) => {
  const svg = ["svg", "path", "line", "text", "circle"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const k in attributes || {}) node.setAttribute(k, attributes[k]);
  if (text !== undefined) node.textContent = text;
  return node;
};
const series = key => steps.filter(s => typeof s[key] === "number").map(s => [s.step, s[key]]);
const short = x => x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(4));
const smooth = points => { // exponential, corrected for its start
  let sum = 0, weight = 0;
  return points.map(([x, y]) => { sum = .85 * sum + .15 * y; weight = .85 * weight + .15; return [x, sum / weight]; });
};
function chart(title, lines) {
  const drawn = lines.map(l => ({...l, points: series(l.key)})).filter(l => l.points.length);
  if (!drawn.length) return;
  const all = drawn.flatMap(l => l.points), W = 360, H = 190, L = 46, R = 8, T = 8, B = 22;
  let x0 = Math.min(...all.map(p => p[0])), x1 = Math.max(...all.map(p => p[0])), y0 = Math.min(...all.map(p => p[1])), y1 = Math.max(...all.map(p => p[1]));
  if (x0 === x1) x1 = x0 + 1;
  if (y0 === y1) { y0 -= .5; y1 += .5; }
  const X = x => L + (x - x0) / (x1 - x0) * (W - L - R), Y = y => T + (y1 - y) / (y1 - y0) * (H - T - B);
  const svg = el("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title});
  for (let i = 0; i <= 4; i++) {
    const y = y0 + (y1 - y0) * i / 4;
    svg.append(el("line", {class: "grid", x1: L, x2: W - R, y1: Y(y), y2: Y(y)}), el("text", {x: L - 6, y: Y(y) + 4, "text-anchor": "end"}, short(y)));
  }
  svg.append(el("text", {x: L, y: H - 6}, "step " + x0), el("text", {x: W - R, y: H - 6, "text-anchor": "end"}, x1));
  const path = points => points.map((p, i) => (i ? "L" : "M") + X(p[0]).toFixed(1) + " " + Y(p[1]).toFixed(1)).join("");
  for (const l of drawn) {
    const many = l.points.length > 30;
    svg.append(el("path", {d: path(l.points), fill: "none", stroke: l.color, "stroke-width": 1.5, class: many ? "raw" : ""}));
    if (many) svg.append(el("path", {d: path(smooth(l.points)), fill: "none", stroke: l.color, "stroke-width": 2}));
    if (l.points.length <= 30) for (const p of l.points) { const c = el("circle", {cx: X(p[0]), cy: Y(p[1]), r: 2.4, fill: l.color}); c.append(el("title", {}, `step ${p[0]}: ${short(p[1])}`)); svg.append(c); }
  }
  const card = el("div", {class: "card"});
  card.append(el("h3", {}, title), svg);
  if (drawn.length > 1) for (const l of drawn) { const k = el("span", {class: "key"}), i = el("i"); i.style.background = l.color; k.append(i, l.label); card.append(k); }
  document.getElementById("charts").append(card);
}
const A = "var(--a)", B = "var(--b)", one = (title, key) => chart(title, [{key, color: A}]);
chart("Reward", [{key: "train/reward", color: A, label: "train"}, {key: "validation/accuracy", color: B, label: "validation"}]);
chart("Response length (tokens)", [{key: "train/mean_gen_tokens_per_sample", color: A, label: "mean"}, {key: "train/max_gen_tokens_per_sample", color: B, label: "longest"}]);
one("Train / rollout mismatch (token_mult_prob_error, 1 = none)", "train/token_mult_prob_error");
chart("KL", [{key: "train/gen_kl_error", color: A, label: "rollout to train"}, {key: "train/kl_penalty", color: B, label: "to the reference"}]);
one("Loss", "train/loss"); one("Gradient norm", "train/grad_norm"); one("Entropy (approximate)", "train/approx_entropy");
one("Truncated responses (share)", "train/truncation_rate"); one("Learning rate", "train/lr"); one("Tokens per second", "performance/tokens_per_sec");
const timing = {}, nested = k => k.includes("/") && !k.endsWith("/total");
for (const s of steps) for (const k in s) if (k.startsWith("timing/train/") && !nested(k.slice(13))) timing[k.slice(13)] = (timing[k.slice(13)] || 0) + s[k];
const total = timing.total_step_time || 0; delete timing.total_step_time;
const parts = Object.entries(timing).sort((a, b) => b[1] - a[1]), known = parts.reduce((s, p) => s + p[1], 0);
if (total > known) parts.push(["other", total - known]);
const bar = el("div", {class: "bar"}), keys = el("div");
parts.forEach(([name, seconds], i) => {
  const color = `hsl(${(215 + i * 47) % 360} 62% ${52 + i % 3 * 8}%)`, share = total ? 100 * seconds / total : 0, piece = el("div", {title: `${name}: ${seconds.toFixed(1)} s`});
  piece.style.cssText = `width:${share}%;background:${color}`; bar.append(piece);
  const key = el("span", {class: "key"}), box = el("i"); box.style.background = color; key.append(box, `${name} ${seconds.toFixed(1)} s (${share.toFixed(0)} %)`); keys.append(key);
});
document.getElementById("time").append(el("div", {class: "soft"}, `${total.toFixed(1)} s in ${steps.length} logged steps`), bar, keys);
const tile = (label, value) => { const t = el("div", {class: "tile"}); t.append(el("b", {}, value), el("span", {class: "soft"}, label)); document.getElementById("tiles").append(t); };
const ends = key => { const p = series(key); return p.length ? `${short(p[0][1])} → ${short(p[p.length - 1][1])}` : "–"; };
document.getElementById("title").textContent = run.title; document.title = run.title;
document.getElementById("subtitle").textContent = `${steps.length ? steps[steps.length - 1].step : 0} steps`;
tile("reward", ends("train/reward")); tile("validation accuracy", ends("validation/accuracy")); tile("seconds a step, mean", total ? short(total / series("timing/train/total_step_time").length) : "–");
const table = document.getElementById("samples"), head = el("tr"); for (const h of ["step", "reward", "prompt and response"]) head.append(el("th", {}, h)); table.append(head);
for (const s of run.samples) { const row = el("tr"); row.append(el("td", {}, s.step), el("td", {}, typeof s.reward === "number" ? short(s.reward) : "–"), el("td", {}, s.content)); table.append(row); }
document.getElementById("config").textContent = run.config;
</script></body></html>
)html";

}  // namespace hexad::telemetry
