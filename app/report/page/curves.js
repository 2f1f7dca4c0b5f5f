// The curves that a person looks at first, and all the others.
const headline = [
  ["Reward", ["train/reward", "train"], ["validation/accuracy", "validation"]],
  [
    "Response length (tokens)", ["train/mean_gen_tokens_per_sample", "mean"],
    ["train/max_gen_tokens_per_sample", "longest"]
  ],
  ["Truncated responses (share)", ["train/truncation_rate", "truncated"]],
  [
    "Train/rollout mismatch (token_mult_prob_error, 1 = none)", ["train/token_mult_prob_error", "token_mult_prob_error"]
  ],
  ["KL", ["train/gen_kl_error", "rollout to train"], ["train/kl_penalty", "to the reference"]],
  [
    "Loss", ["train/loss", "train"], ["validation/val_loss", "validation"], ["validation-default/loss", "validation"]
  ],
  [
    "Accuracy", ["train/accuracy", "train"], ["validation-default/accuracy", "validation"],
    ["validation/pass_k", "validation pass@k"]
  ],
  [
    "Score of the pair (mean)", ["train/rewards_chosen_mean", "chosen"], ["train/rewards_rejected_mean", "rejected"]
  ],
  ["Gradient norm", ["train/grad_norm", "grad_norm"]],
  ["Entropy (approximate)", ["train/approx_entropy", "entropy"]],
  ["Clipped ratio", ["train/probs_ratio", "mean"], ["train/probs_ratio_clamped", "clamped"]],
  ["Learning rate", ["train/lr", "lr"]],
  ...(
    runs.length > 1 ? [["Step time (s)", ["timing/train/total_step_time", "total_step_time"]]] : []),  // one run: below
  ["Tokens per second", ["performance/tokens_per_sec", "tokens/s"]],
  [
    "Memory of the fullest rank (GiB)", ["train/memory_used_gib", "used of its GPU"],
    ["train/memory_reserved_gib", "reserved"], ["train/memory_allocated_gib", "allocated"]
  ],
];

// Of pairs and of next tokens; where there are rewards it is another thing, and not what a person looks for.
const isBeside = name => name === "train/accuracy" && runs.some(run => has(run, "train/reward"));

// One line a metric of one run; several runs are told apart by colour, their metrics by dashes.
function metricChart(title, metrics) {
  const lines = [];
  metrics.forEach(([name, label], second) => runs.forEach((run, index) => {
    if (!has(run, name)) return;
    lines.push({
      run,
      name,
      label,
      fill: colour(runs.length === 1 ? second : index),
      dash: runs.length > 1 && second > 0,
      extra: metrics.length > 1 ? label : ""
    });
  }));
  return lines.length ? lineChart(title, lines) : null;
}

function drawCurves() {
  charts.length = 0;
  made.clear();
  find("charts").replaceChildren();
  for (const [title, ...known] of headline) {
    const metrics = known.filter(([name]) => !isBeside(name) && runs.some(run => has(run, name)));
    const labels = [...new Set(metrics.map(([, label]) => label))], dashed = runs.length > 1 && labels.length > 1;
    const card =
      metricChart(dashed ? `${title}: ${labels[0]}, ${labels.slice(1).join(" and ")} dashed` : title, metrics);
    if (card) find("charts").append(card);
  }
  listMetrics();
}

const made = new Map();  // charts of "All metrics" by name
function listMetrics() {
  if (!find("more").open) return;
  const names = [...new Set(runs.flatMap(run => Object.keys(run.series)))].sort();
  const wanted = find("metric_search").value.toLowerCase(),
        shown = names.filter(name => name.toLowerCase().includes(wanted));
  for (const name of shown) {
    if (!made.has(name)) made.set(name, metricChart(name, [[name, name]]));
  }
  find("all_charts").replaceChildren(...shown.map(name => made.get(name)).filter(card => card));
  find("metric_count").textContent = `${shown.length} of ${names.length}`;
}

function controls() {
  find("more").addEventListener("toggle", () => listMetrics());
  find("metric_search").addEventListener("input", () => listMetrics());
  const slider = find("smoothing"), shown = find("smoothing_value");
  slider.value = view.smoothing;
  shown.textContent = view.smoothing.toFixed(2);
  slider.addEventListener("input", () => {
    view.smoothing = +slider.value;
    shown.textContent = view.smoothing.toFixed(2);
    redraw();
  });
  find("outliers").addEventListener("change", () => {
    view.outliers = find("outliers").checked;
    redraw();
  });
  find("axis").addEventListener("change", () => {
    view.axis = find("axis").value;
    redraw();
  });
  if (runs.length === 1) return;
  runs.forEach((run, index) => {
    const button = node("button", {"aria-pressed": "true", title: "show or hide"}, swatch(colour(index)), run.label);
    button.onclick = () => {
      if (!view.hidden.delete(run)) view.hidden.add(run);
      button.setAttribute("aria-pressed", !view.hidden.has(run));
      redraw();
    };
    find("legend").append(button);
  });
}
