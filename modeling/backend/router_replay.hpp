// Router replay: a training pass sends every token to the experts that the last log-prob pass of the current weights
// chose for it; how much each counts is still the router's own (Megatron-Core's RouterReplay; why: arXiv 2510.11370).
// What was chosen stays on the host of the rank that chose it, under the tokens of its sequence, and is fetched by the
// rank that needs it.
#pragma once
#include <map>
#include <vector>

#include "modeling/backend/micro_batch.hpp"
#include "modeling/moe/moe_layer.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

class RouterReplay {
 public:
  struct Ranks {
    Group world;
    Group shared;    // that have parts of one micro-batch: tensor x context parallel
    Group replicas;  // that have the same layers, and other micro-batches: data parallel
  };
  // layers: those with experts on this rank.
  RouterReplay(const ModelConfig& model, const std::vector<int64_t>& layers, at::Device device, const Ranks& ranks);

  struct Batch {
    const MicroBatch* batch;  // with its router_rows; it stays where it is
    const hexad_batch* from;
  };

  // The log-prob pass: layers that run until finish() are recorded, and what was recorded before is forgotten.
  void start_recording();
  // Of batches that all layers of this rank have seen. Collective over ranks.shared.
  void keep(const std::vector<Batch>& batches);
  // The training pass: layers that run until finish() go by the record. Throws sdk::Error on all ranks if one has a
  // sequence that was not recorded; its place is an index into `batches`. Collective over the world.
  void start_replay(const std::vector<Batch>& batches);
  // After a pass, whatever became of it.
  void finish();

  // What the pass under way wants of a layer. `batch` stays where it is until the pass is over.
  void apply(const MicroBatch& batch, int64_t layer, MoeRun& run);

 private:
  enum class Pass { other, recorded, replayed };
  void record(const MicroBatch& batch, int64_t layer, const at::Tensor& experts);  // int64 [rows, k]
  at::Tensor selected(const MicroBatch& batch, int64_t layer) const;               // likewise
  using Key = std::pair<int64_t, int64_t>;  // hash of the tokens, how many they are
  static Key key_of(const Batch& batch, int64_t sequence);
  void fetch(const std::vector<Key>& missing);

  Pass pass_ = Pass::other;
  int64_t topk_;
  at::Device device_;
  Ranks ranks_;
  std::map<int64_t, int64_t> place_;                   // of a layer
  std::map<const MicroBatch*, at::Tensor> recording_;  // int32 [T, layers, k]
  std::map<const MicroBatch*, at::Tensor> prepared_;   // likewise
  std::map<Key, at::Tensor> kept_;                     // int16 [tokens, layers * k], on the host
};

}  // namespace hexad::modeling
