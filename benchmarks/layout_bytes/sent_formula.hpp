// Bytes that a rank sends in a training step, collective by collective, counted as CountingGroup counts them.
// H hidden size; E and G bytes of a parameter (and activation) and of a gradient; t a micro-batch's tokens on a
// context-parallel rank, k experts of a token, KV elements of a rank's keys and values; M micro-batches, L this stage's
// layers, P this rank's parameters, n ranks of the group.
#pragma once
#include "benchmarks/layout_bytes/cases.hpp"

namespace layout_bytes {

struct Term {
  std::string collective;  // CountingGroup's key
  double bytes = 0;
  std::string what;
};

class SentFormula {
 public:
  SentFormula(const Layout& layout, const Form& form, int64_t layers, int rank)
      : layout_(layout),
        form_(form),
        parameters_(parameters_of(layout, layers, rank)),
        rank_(rank),
        layers_(static_cast<double>(layers / layout.pp)),
        first_(layout.stage(rank) == 0),
        last_(layout.stage(rank) == layout.pp - 1) {}

  std::vector<Term> terms() {
    data_parallel("dp_cp", parameters_.dense, layout_.dp_cp());
    if (layout_.experts) data_parallel("edp", parameters_.expert, layout_.edp());
    if (layout_.tp > 1) tensor_parallel();
    if (layout_.pp > 1) pipeline_parallel();
    if (layout_.cp > 1) context_parallel();
    if (layout_.ep > 1) expert_parallel();
    add("world all-reduce", 2 * others(layout_.world) * 8, "norm of all gradients: 2 (n-1)/n 8");
    return std::move(terms_);
  }

 private:
  static constexpr double M = kMicroBatches, H = kHidden;
  static double others(int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }
  double E() const { return static_cast<double>(form_.parameter()); }
  double t() const { return static_cast<double>(layout_.row()); }
  // Rows of the head: all tokens but the document's last, which the first context-parallel rank holds.
  double rows() const { return t() - (layout_.cp_rank(rank_) == 0); }
  void add(std::string collective, double bytes, std::string what) {
    if (bytes > 0) terms_.push_back({std::move(collective), bytes, std::move(what)});
  }

  // What is not shared is all-reduced; shared optimizer states: gradients to their owners, parameters back; shared
  // gradients: those after every micro-batch; shared parameters: these before every pass instead, where the embedding
  // is used in the forward pass alone.
  void data_parallel(const std::string& group, int64_t count, int64_t n) {
    const double gradients = others(n) * static_cast<double>(count * form_.gradient()),
                 parameters = others(n) * static_cast<double>(count * form_.parameter());
    const double embedding = group == "dp_cp" && first_
                                 ? others(n) * static_cast<double>(kVocab * kHidden / layout_.tp * form_.parameter())
                                 : 0;
    switch (form_.level()) {
      case 0: add(group + " all-reduce", 2 * gradients, "gradients: 2 (n-1)/n G P"); break;
      case 1:
        add(group + " reduce-scatter", gradients, "gradients: (n-1)/n G P");
        add(group + " all-gather", parameters, "updated parameters: (n-1)/n E P");
        break;
      case 2:
        add(group + " reduce-scatter", M * gradients, "gradients: (n-1)/n G P M");
        add(group + " all-gather", parameters, "updated parameters: (n-1)/n E P");
        break;
      default:
        add(group + " reduce-scatter", M * gradients, "gradients: (n-1)/n G P M");
        add(group + " all-gather", M * (2 * parameters - embedding),
            "parameters, forward and backward: (n-1)/n E (2 P - embedding) M");
    }
  }

  // A block has two column-parallel and two row-parallel layers (Megatron-LM, arXiv 1909.08053). With sequence
  // parallelism (arXiv 2205.05198) one gathers tokens forward and scatters their gradient backward, the other the
  // reverse; the column-parallel one gathers its tokens again for the gradient of its weight.
  void tensor_parallel() {
    const double share = others(layout_.tp), hidden = share * t() * H * M;
    const double pairs = layout_.experts ? 1 : 2;  // experts are not cut
    if (layout_.sequence_parallel) {
      add("tp all-gather", hidden * E() * 3 * pairs * layers_, "blocks: 3 (n-1)/n t H E a pair, L M");
      add("tp reduce-scatter", hidden * E() * 2 * pairs * layers_, "blocks: 2 (n-1)/n t H E a pair, L M");
      if (first_) add("tp reduce-scatter", hidden * 4, "embedding forward: (n-1)/n t H 4 M");
      if (first_) add("tp all-gather", hidden * 4, "embedding backward: (n-1)/n t H 4 M");
      if (last_) add("tp all-gather", hidden * E(), "head forward: (n-1)/n t H E M");
      if (last_) add("tp reduce-scatter", hidden * E(), "head backward: (n-1)/n t H E M");
      const double times = form_.level() > 1 ? M : 1,
                   whole = layers_ * (2 * H + (layout_.experts ? kExperts * H : 0)) + (last_ ? H : 0);
      add("tp all-reduce", 2 * share * whole * static_cast<double>(form_.gradient()) * times,
          "gradients of norms and routers: 2 (n-1)/n G a parameter");
    } else {
      add("tp all-reduce", 2 * hidden * E() * 2 * pairs * layers_,
          "blocks: 2 all-reduces a pair, 2 (n-1)/n t H E each, L M");
      if (first_) add("tp all-reduce", 2 * hidden * 4, "embedding forward: 2 (n-1)/n t H 4 M");
      if (last_) add("tp all-reduce", 2 * hidden * E(), "head backward: 2 (n-1)/n t H E M");
    }
    if (last_)
      add("tp all-reduce", 2 * share * 4 * rows() * 4 * M,
          "softmax of the head: 2 (n-1)/n 4 fp32 a predicted token, M");
  }

  // The residual stream is fp32.
  void pipeline_parallel() {
    const double message = t() / (layout_.tokens_sharded() ? layout_.tp : 1) * H * 4;
    add("pp send", last_ ? 0 : message * M, "activations to the next stage: t H 4 M");
    add("pp send", first_ ? 0 : message * M, "gradients to the stage before: t H 4 M");
  }

  // Keys and values go round the ring forward and backward; their fp32 gradients go one hop further, home.
  void context_parallel() {
    const double n = layout_.cp, block = t() * 2 * kKeyHeads * kHeadDim / layout_.tp;
    add("cp send", 2 * (n - 1) * block * E() * layers_ * M, "keys and values, forward and backward: 2 (n-1) KV E L M");
    add("cp send", n * block * 4 * layers_ * M, "their gradients: n KV 4 L M");
    if (last_)
      add("cp all-reduce", 2 * others(layout_.cp) * 2 * kTokens * 4 * M,
          "log-probs and entropies: 2 (n-1)/n 2 fp32 a token, M");
  }

  // All tokens go to all experts: (n-1)/n of kExperts rows a token leave, and their results come back; each way once
  // forward and once backward.
  void expert_parallel() {
    const double tokens = t() / (layout_.tokens_sharded() ? layout_.tp : 1),
                 leaving = others(layout_.ep) * tokens * kExperts * layers_ * M;
    add("tp_ep all-to-all", leaving * H * E() * 4, "routed tokens and results: 4 (n-1)/n t k H E L M");
    add("tp_ep all-to-all", leaving * E() * 2, "their probabilities: 2 (n-1)/n t k E L M");
    add("tp_ep all-to-all", static_cast<double>((layout_.ep - 1) * kExperts / layout_.ep * 8) * layers_ * M,
        "counts of tokens: (n-1)/n experts 8 L M");
  }

  const Layout& layout_;
  const Form& form_;
  Parameters parameters_;
  int rank_;
  double layers_;
  bool first_, last_;
  std::vector<Term> terms_;
};

}  // namespace layout_bytes
