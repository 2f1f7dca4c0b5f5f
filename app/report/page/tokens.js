// A transcript token by token: colour tells where training and rollout disagree, or what surprised the model.

// Characters that a person could not see, or that would reorder what stands around them, are shown by name.
const hiddenCharacters =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
function visible(text) {
  return String(text).replace(hiddenCharacters, c => {
    const code = c.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : `⟨${code.toString(16)}⟩`;
  });
}
// Without prev_logprobs, which some runs do not compute, there is none.
const mismatch = (sample, i) => {
  if (!sample.train || sample.train[i] === null || sample.rollout[i] === null) return 0;
  return Math.abs(sample.train[i] - sample.rollout[i]);
};
const worst = sample => (sample.tokens || []).reduce((most, _, i) => Math.max(most, mismatch(sample, i)), 0);

// 0 to 1: nothing below 0.001 nat, full at 1 nat, logarithmic between; what rounding alone does stays pale.
const heat = difference => difference <= 1e-3 ? 0 : Math.min(1, (Math.log10(difference) + 3) / 3) ** 1.5;
const shades = {
  mismatch: (sample, i) => heat(mismatch(sample, i)),
  surprise: (sample, i) => Math.min(1, -(sample.rollout[i] ?? sample.train?.[i] ?? 0) / 8),
  none: () => 0,
};
const scales = {
  mismatch: ["|prev_logprobs − generation_logprobs|", "0.001", "1 nat, logarithmic"],
  surprise: ["−generation_logprobs", "0", "8 nats"],
};

function tokenTip(sample, i) {
  const lines = [tipLine(JSON.stringify(visible(sample.tokens[i])), "")];
  if (!sample.written[i]) return [...lines, tipLine("not written by the model, not in the loss", "")];
  const probability = x => x === null ? "–" : `${x.toFixed(4)} (p ${Math.exp(x).toFixed(4)})`;
  lines.push(tipLine("generation_logprobs", probability(sample.rollout[i])));
  if (!sample.train) return [...lines, tipLine("prev_logprobs", "not computed")];
  return [
    ...lines, tipLine("prev_logprobs", probability(sample.train[i])), tipLine("mismatch", short(mismatch(sample, i)))
  ];
}

function tokenNodes(sample, shade) {
  const nodes = [];
  let given = null;
  sample.tokens.forEach((token, i) => {
    if (sample.left_out && i === sample.left_out.at)
      nodes.push(node("span", {class: "role"}, `… ${sample.left_out.count} tokens left out …`));
    if ((given === null || given) && sample.written[i]) nodes.push(node("span", {class: "role"}, "model"));
    if (given === false && !sample.written[i]) nodes.push(node("span", {class: "role"}, "environment"));
    given = !sample.written[i];
    const span = node(
      "span", {class: given ? "token given" : "token", "data-i": i}, token === "\n" ? "↵\n" : visible(token ?? ""));
    const alpha = given ? 0 : 0.85 * shade(sample, i);
    if (alpha > 0.01) span.style.background = `rgba(var(--hot),${alpha.toFixed(2)})`;
    nodes.push(span);
  });
  return nodes;
}

function transcript(sample, colouring) {
  const box = node("div", {class: "transcript"});
  box.append(node("span", {class: "role"}, "prompt"), node("span", {class: "prompt"}, visible(sample.prompt)));
  if (sample.tokens)
    box.append(...tokenNodes(sample, shades[colouring]));
  else
    box.append(node("span", {class: "role"}, "response"), visible(sample.response));
  if (sample.expected) box.append(node("span", {class: "role"}, "expected answer"), visible(sample.expected));
  box.append(node("span", {class: "role"}, "verdict"), verdict(sample));
  box.addEventListener("pointermove", event => {
    const i = event.target.dataset?.i;
    if (i === undefined)
      hideTip();
    else
      showTip(event, ...tokenTip(sample, +i));
  });
  box.addEventListener("pointerleave", hideTip);
  return box;
}

function drawScale(colouring) {
  const scale = scales[colouring], withTokens = view.shown.flatMap(run => run.samples).filter(sample => sample.tokens);
  if (colouring === "mismatch" && withTokens.length && withTokens.every(sample => !sample.train))
    return find("scale").replaceChildren("not computed: nothing in this run needs prev_logprobs");
  find("scale").replaceChildren(...(
    scale ?
      [`${scale[0]}: ${scale[1]}`, node("span", {class: "gradient"}), `${scale[2]}; dotted: not written by the model`] :
      []));
}
