// Router replay: a training pass sends every token to the experts that an earlier pass chose for it; how much each
// counts is still the router's own (Megatron-Core's RouterReplay; why: arXiv 2510.11370). The earlier pass is the
// rollout, whose choice comes with the batch as routed_experts and is replayed in the log-prob pass too; or the last
// log-prob pass of the current weights. What that chose stays on the host of the rank that chose it, under the tokens
// of its sequence, and is fetched by the rank that needs it.
#pragma once
#include <map>
#include <span>
#include <vector>

#include <hexad/services.hpp>

#include "modeling/backend/micro_batch.hpp"
#include "modeling/moe/moe_layer.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// policy.router_replay: enabled, source. Throws sdk::Error for a model without experts.
enum class ReplaySource { none, rollout, logprobs };
ReplaySource replay_source(const sdk::Config& policy, const ModelConfig& model);
// hexad_backend_info.inputs.
std::span<const char* const> batch_inputs(ReplaySource source);

class RouterReplay {
 public:
  struct Ranks {
    Group world;
    Group shared;    // that have parts of one micro-batch: tensor x context parallel
    Group replicas;  // that have the same layers, and other micro-batches: data parallel
  };
  // layers: those with experts on this rank, ascending.
  RouterReplay(ReplaySource source, const ModelConfig& model, const std::vector<int64_t>& layers, at::Device device,
               const Ranks& ranks);

  struct Batch {
    const MicroBatch* batch;  // with its router_rows; it stays where it is
    const hexad_batch* from;
  };

  // A log-prob pass of the current weights over these batches begins: what was recorded before is forgotten, or their
  // routed_experts are checked. Throws sdk::Error on all ranks if one has some that cannot be. Collective over the
  // world where the rollout is replayed.
  void begin_logprobs(std::span<const hexad_batch* const> batches);
  // Micro-batches of that pass, until finish(): recorded; or replayed from the rollout, and routed anew where they have
  // no routed_experts.
  void start_logprobs(const std::vector<Batch>& batches);
  // Of those that all layers of this rank have seen. Collective over ranks.shared if they were recorded.
  void keep(const std::vector<Batch>& batches);
  // The training pass, until finish(). Throws sdk::Error on all ranks if one has a sequence whose experts are not
  // known, or routed_experts that cannot be; its place is an index into `batches`. Collective over the world.
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
  // Fills prepared_; returns what is wrong, or "".
  std::string prepare_recorded(const std::vector<Batch>& batches);
  // What is wrong with a batch's routed_experts, or "".
  std::string fault_of(const hexad_batch& batch, size_t index, bool required) const;
  void prepare_given(const std::vector<Batch>& batches);  // of those that have them; checked before
  void agree(const std::string& wrong);                   // throws on all ranks if anything is wrong on one

  Pass pass_ = Pass::other;
  ReplaySource source_;
  int64_t topk_, num_experts_;
  std::vector<int64_t> columns_;  // of routed_experts: this rank's layers among those with experts
  int64_t all_layers_ = 0;        // with experts
  at::Device device_;
  Ranks ranks_;
  std::map<int64_t, int64_t> place_;                   // of a layer
  std::map<const MicroBatch*, at::Tensor> recording_;  // int32 [T, layers, k]
  std::map<const MicroBatch*, at::Tensor> prepared_;   // int16, likewise
  std::map<Key, at::Tensor> kept_;                     // int16 [tokens, layers * k], on the host
};

}  // namespace hexad::modeling
