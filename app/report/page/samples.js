// Transcripts of a few steps, filtered and ordered.
const orders = {
  step: (a, b) => b.step - a.step || a.row - b.row,
  mismatch: (a, b) => worst(b) - worst(a),
  low: (a, b) => (a.reward ?? Infinity) - (b.reward ?? Infinity),
  high: (a, b) => (b.reward ?? -Infinity) - (a.reward ?? -Infinity),
  length: (a, b) => (b.length ?? 0) - (a.length ?? 0),
};
const mostShown = 100;

function wantedSamples(run) {
  const text = find("sample_search").value.toLowerCase(), step = find("sample_step").value;
  const from = parseFloat(find("reward_from").value), to = parseFloat(find("reward_to").value);
  return run.samples
    .filter(
      s => (step === "" || s.step === +step) && !(s.reward < from) && !(s.reward > to) &&
        (isNaN(from) && isNaN(to) || typeof s.reward === "number") &&
        (text === "" || (s.prompt + s.response + (s.expected || "")).toLowerCase().includes(text)))
    .sort(orders[find("sample_order").value]);
}

// Why a sample has its reward, and what the training makes of it.
function verdict(sample) {
  const parts = Object.entries(sample.components || {}).map(([name, value]) => `${name} ${short(value)}`);
  const scored = typeof sample.reward === "number", words = [scored ? `reward ${short(sample.reward)}` : "not scored"];
  if (scored && parts.length) words.push(`of ${parts.join(", ")}`);
  if (sample.truncated) words.push("cut off by the token limit");
  if (!scored)
    words.push("counts nowhere");
  else if (sample.left_loss)
    words.push("left out of the loss");
  else if (sample.advantage === 0)
    words.push("advantage 0: no better or worse than the others of its prompt, and teaches nothing");
  else if (typeof sample.advantage === "number")
    words.push(`advantage ${short(sample.advantage)}: made ${sample.advantage > 0 ? "more" : "less"} likely`);
  return words.join("; ");
}

const opened = new Map();  // whether a person has opened or closed a sample, by its key

function sampleCard(sample, key, open) {
  const fact = (label, value) => node("span", {}, label + " ", node("b", {}, value));
  const head = node("summary", {}, fact("step", String(sample.step)), fact("reward", short(sample.reward)));
  if (typeof sample.advantage === "number") head.append(fact("advantage", short(sample.advantage)));
  if (typeof sample.length === "number") head.append(fact("tokens", String(sample.length)));
  if (sample.tokens) head.append(fact("worst mismatch", sample.train ? short(worst(sample)) : "not computed"));
  head.append(node("span", {class: "first_line"}, visible(sample.response).trim().slice(0, 200)));
  const card = node("details", {class: "sample"}, head);
  card.addEventListener("toggle", () => {  // tokens are many: made when they are looked at
    if (card.open && card.children.length === 1) card.append(transcript(sample, find("token_colour").value));
  });
  head.addEventListener("click", () => opened.set(key, !card.open));
  card.open = opened.get(key) ?? open;
  return card;
}

function drawSamples() {
  let all = 0, fit = 0, drawn = 0;
  const columns = view.shown.map(run => {
    const wanted = wantedSamples(run), shown = wanted.slice(0, mostShown);
    all += run.samples.length, fit += wanted.length, drawn += shown.length;
    const cards = shown.map((sample, i) => sampleCard(sample, `${run.directory} ${sample.step} ${sample.row}`, i < 2));
    return node("div", {}, ...heading(run), ...cards);
  });
  find("sample_count").textContent = `${fit} of ${all}` + (drawn < fit ? `, the first ${drawn} shown` : "");
  find("samples").replaceChildren(...columns);
  drawScale(find("token_colour").value);
}

// The choice of steps belongs to the runs that are shown.
function offerSteps() {
  const chosen = find("sample_step").value;
  const steps = [...new Set(view.shown.flatMap(run => run.samples.map(s => s.step)))].sort((a, b) => b - a);
  find("sample_step")
    .replaceChildren(node("option", {value: ""}, "all"), ...steps.map(s => node("option", {value: s}, s)));
  find("sample_step").value = steps.includes(+chosen) ? chosen : "";
}
function sampleControls() {
  for (const id of ["sample_search", "sample_step", "reward_from", "reward_to", "sample_order", "token_colour"])
    find(id).addEventListener("input", drawSamples);
}
