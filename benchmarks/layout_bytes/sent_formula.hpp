// Bytes that a rank sends in a training step, collective by collective, counted as CountingGroup counts them.
// H hidden size; E and G bytes of a parameter (and activation) and of a gradient; t a micro-batch's tokens on a
// context-parallel rank; M micro-batches, L this stage's layers, P this rank's parameters, n ranks of the group.
#pragma once
#include "benchmarks/layout_bytes/cases.hpp"

namespace layout_bytes {

struct Term {
  std::string collective;  // CountingGroup's key: group and collective
  double bytes = 0;
  std::string what;
};

// One rank's part in a step.
struct Sender {
  const Layout& layout;
  const Form& form;
  int rank;
  Parameters parameters;
  double L, M = kMicroBatches, H = kHidden;
  bool first, last;  // stage
  std::vector<Term> terms = {};

  Sender(const Layout& layout_, const Form& form_, int64_t layers, int rank_)
      : layout(layout_),
        form(form_),
        rank(rank_),
        parameters(parameters_of(layout_, layers, rank_)),
        L(static_cast<double>(layers / layout_.pp)),
        first(layout_.stage(rank_) == 0),
        last(layout_.stage(rank_) == layout_.pp - 1) {}

  double E() const { return static_cast<double>(form.parameter()); }
  double G() const { return static_cast<double>(form.gradient()); }
  double t() const { return static_cast<double>(layout.row()); }
  // Of a collective over n ranks, what goes to others.
  static double others(int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }
  // Gradients are reduced after every micro-batch where they are shared, else once.
  double reductions() const { return form.level() > 1 ? M : 1; }

  void add(std::string collective, double bytes, std::string what) {
    if (bytes > 0) terms.push_back({std::move(collective), bytes, std::move(what)});
  }
};

// Gradients and parameters.

// What is not shared is all-reduced. Shared optimizer states: gradients to their owners, parameters back. Shared
// gradients: those after every micro-batch. Shared parameters: these before every pass instead, where the embedding is
// used in the forward pass alone.
inline void add_data_parallel(Sender& s, const std::string& group, int64_t count, int64_t embedding, int64_t n) {
  const double part = Sender::others(n), P = static_cast<double>(count), M = s.M;
  if (s.form.level() == 0) return s.add(group + " all-reduce", 2 * part * s.G() * P, "gradients: 2 (n-1)/n G P");
  s.add(group + " reduce-scatter", part * s.G() * P * s.reductions(),
        s.form.level() > 1 ? "gradients: (n-1)/n G P M" : "gradients: (n-1)/n G P");
  if (s.form.level() < 3) return s.add(group + " all-gather", part * s.E() * P, "updated parameters: (n-1)/n E P");
  s.add(group + " all-gather", part * s.E() * (2 * P - static_cast<double>(embedding)) * M,
        "parameters, forward and backward: (n-1)/n E (2 P - embedding) M");
}

inline void add_parameters(Sender& s) {
  const Layout& layout = s.layout;
  const int64_t n = layout.dense_owners(), vocabulary = kVocab * kHidden / layout.tp;
  add_data_parallel(s, layout.instances > 1 ? "dp_cp_part" : "dp_cp", s.parameters.dense, s.first ? vocabulary : 0, n);
  if (layout.experts) add_data_parallel(s, "edp", s.parameters.expert, 0, layout.edp());
  const double share = 1 / static_cast<double>(n), main = static_cast<double>(s.form.main_gradient());
  s.add("dp_cp_replicas all-reduce",
        2 * Sender::others(layout.instances) * main * share * static_cast<double>(s.parameters.dense),
        "owned gradients of the instances: 2 (n-1)/n 4 P/d");
  if (layout.tied && (s.first || s.last))
    s.add("embedding all-reduce", 2 * Sender::others(2) * main * share * static_cast<double>(vocabulary),
          "gradient of the tied embedding: 2 (n-1)/n 4 V H/d");
  s.add("world all-reduce", 2 * Sender::others(layout.world) * 8, "norm of all gradients: 2 (n-1)/n 8");
  if (layout.tp == 1) return;
  const double whole = s.L * (2 * s.H + (layout.experts ? kExperts * s.H : 0)) + (s.last ? s.H : 0);
  if (layout.sequence_parallel)
    s.add("tp all-reduce", 2 * Sender::others(layout.tp) * s.G() * whole * s.reductions(),
          "gradients of norms and routers, of one's own tokens: 2 (n-1)/n G a parameter");
  const int64_t copies = layout.tp / std::min<int64_t>(layout.tp, kKeyHeads);
  s.add("equal_heads all-reduce",
        2 * Sender::others(copies) * s.G() * 2 * s.H * kHeadDim * static_cast<double>(layout.key_heads()) * s.L *
            s.reductions(),
        "gradients of replicated keys and values: 2 (n-1)/n G a parameter");
}

// Activations and their gradients.

// A block has two pairs of a column- and a row-parallel layer (Megatron-LM, arXiv 1909.08053); experts are none. With
// sequence parallelism (arXiv 2205.05198) the first of a pair gathers tokens forward and scatters their gradient
// backward, the other the reverse; the first one gathers its tokens again for the gradient of its weight.
inline void add_tensor_parallel(Sender& s) {
  const double part = Sender::others(s.layout.tp), hidden = part * s.t() * s.H * s.M, E = s.E();
  const double pairs = s.layout.experts ? 1 : 2;
  if (s.layout.sequence_parallel) {
    s.add("tp all-gather", hidden * E * 3 * pairs * s.L, "blocks: 3 (n-1)/n t H E a pair, L M");
    s.add("tp reduce-scatter", hidden * E * 2 * pairs * s.L, "blocks: 2 (n-1)/n t H E a pair, L M");
    if (s.first) s.add("tp reduce-scatter", hidden * 4, "embedding forward: (n-1)/n t H 4 M");
    if (s.first) s.add("tp all-gather", hidden * 4, "embedding backward: (n-1)/n t H 4 M");
    if (s.last) s.add("tp all-gather", hidden * E, "head forward: (n-1)/n t H E M");
    if (s.last) s.add("tp reduce-scatter", hidden * E, "head backward: (n-1)/n t H E M");
  } else {
    s.add("tp all-reduce", 2 * hidden * E * 2 * pairs * s.L, "blocks: 2 all-reduces a pair, 2 (n-1)/n t H E each, L M");
    if (s.first) s.add("tp all-reduce", 2 * hidden * 4, "embedding forward: 2 (n-1)/n t H 4 M");
    if (s.last) s.add("tp all-reduce", 2 * hidden * E, "head backward: 2 (n-1)/n t H E M");
  }
  // Of all tokens but the document's last, which the first context-parallel rank holds.
  const double predicting = s.t() - (s.layout.cp_rank(s.rank) == 0);
  if (s.last)
    s.add("tp all-reduce", 2 * part * 4 * predicting * 4 * s.M,
          "softmax of the head: 2 (n-1)/n 4 fp32 a prediction, M");
}

// The residual stream, fp32, between the V chunks of every rank.
inline void add_pipeline_parallel(Sender& s) {
  const double message = s.t() / (s.layout.tokens_sharded() ? s.layout.tp : 1) * s.H * 4 * s.M,
               chunks = s.layout.virtual_pipeline;
  s.add("pp send", message * (chunks - s.last), "activations to the next stage: t H 4 a chunk, M");
  s.add("pp send", message * (chunks - s.first), "gradients to the stage before: t H 4 a chunk, M");
}

inline void add_ring(Sender& s, const std::string& group, double n, double key_values) {
  s.add(group + " send", 2 * (n - 1) * key_values * s.E() * s.L * s.M,
        "keys and values KV, forward and backward: 2 (n-1) KV E L M");
  s.add(group + " send", n * key_values * 4 * s.L * s.M, "their gradients, one hop more: n KV 4 L M");
}

inline void add_head_exchange(Sender& s, const std::string& group, int64_t n) {
  const double heads = 2.0 * (kHeads / s.layout.tp) + 2.0 * static_cast<double>(std::max(n, s.layout.key_heads()));
  s.add(group + " all-to-all", 2 * Sender::others(n) * s.t() * heads * kHeadDim * s.E() * s.L * s.M,
        "queries, keys, values and output, forward and backward: 2 (n-1)/n t (2 Hq + 2 Hkv) D E L M");
}

// KV: elements of a rank's keys and values. In the ring they go round forward and backward, and their fp32 gradients
// with them and home; gathered they come twice, and the gradients are scattered.
inline void add_context_parallel(Sender& s) {
  const double n = s.layout.cp, key_values = s.t() * 2 * static_cast<double>(s.layout.key_heads()) * kHeadDim;
  if (s.layout.exchange == "p2p") add_ring(s, "cp", n, key_values);
  if (s.layout.exchange == "a2a") add_head_exchange(s, "cp", s.layout.cp);
  if (s.layout.exchange == "a2a+p2p") {
    add_head_exchange(s, "cp_inner", 2);
    add_ring(s, "cp_outer", n / 2, key_values);
  }
  if (s.layout.exchange == "all_gather") {
    s.add("cp all-gather", 2 * (n - 1) * key_values * s.E() * s.L * s.M,
          "keys and values KV, forward and backward: 2 (n-1) KV E L M");
    s.add("cp reduce-scatter", (n - 1) * key_values * 4 * s.L * s.M, "their gradients: (n-1) KV 4 L M");
  }
  if (s.last)
    s.add("cp all-reduce", 2 * Sender::others(s.layout.cp) * 2 * kTokens * 4 * s.M,
          "log-probs and entropies: 2 (n-1)/n 2 fp32 a token, M");
}

// All tokens go to all K experts: K/EP rows of each to every other rank, and as many results back; each way once
// forward and once backward. Or every rank sees all tokens, with the numbers and probabilities of their K experts.
inline void add_expert_parallel(Sender& s) {
  const double tokens = s.t() / (s.layout.tokens_sharded() ? s.layout.tp : 1), K = kExperts,
               n = s.layout.ep * s.layout.etp, E = s.E(), LM = s.L * s.M;
  if (s.layout.dispatcher == "allgather") {
    const double all = (n - 1) * tokens * LM;
    s.add("tp_ep all-gather", all * (2 * s.H * E + K * E), "tokens, probabilities: (n-1) t (2 H + K) E L M");
    s.add("tp_ep all-gather", all * K * 8, "numbers of experts: (n-1) t K 8 L M");
    s.add("tp_ep all-gather", (n - 1) * 8 * LM, "counts of tokens: (n-1) 8 L M");
    s.add("tp_ep reduce-scatter", all * (2 * s.H * E + K * E), "results, gradients: (n-1) t (2 H + K) E L M");
    return;
  }
  const double rows = (n - 1) / s.layout.ep * tokens * K * LM;
  s.add("tp_ep all-to-all", rows * s.H * E * 4, "routed tokens and results: 4 (n-1) t K/EP H E L M");
  s.add("tp_ep all-to-all", rows * E * 2, "their probabilities: 2 (n-1) t K/EP E L M");
  s.add("tp_ep all-to-all", (n - 1) / s.layout.ep * K * 8 * LM, "counts of tokens: (n-1) K/EP 8 L M");
}

inline void add_activations(Sender& s) {
  if (s.layout.tp > 1) add_tensor_parallel(s);
  if (s.layout.pp > 1) add_pipeline_parallel(s);
  if (s.layout.cp > 1) add_context_parallel(s);
  if (s.layout.ep * s.layout.etp > 1) add_expert_parallel(s);
}

inline std::vector<Term> sent_formula(const Layout& layout, const Form& form, int64_t layers, int rank) {
  Sender sender(layout, form, layers, rank);
  add_parameters(sender);
  add_activations(sender);
  return std::move(sender.terms);
}

}  // namespace layout_bytes
