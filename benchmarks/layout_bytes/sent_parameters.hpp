// Bytes that a step sends of gradients and parameters.
#pragma once
#include "benchmarks/layout_bytes/sent_terms.hpp"

namespace layout_bytes {

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

}  // namespace layout_bytes
