// The policy as the algorithm sees it: log-probs, training steps and checkpoints, whatever backend and layout run them.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/process/worker_group.hpp"
#include "core/config/typed/policy_config.hpp"
#include "core/data/batch.hpp"
#include "lib/table/lazy.hpp"

namespace hexad::cluster {

enum class Weights { current = 0, reference = 1, snapshot = 2 };  // HEXAD_WEIGHTS_*
enum class Filters { sampling, none };                            // of log-probs: top_k and top_p

// What one call of train() came to, over all its global batches, micro-batches and ranks.
struct TrainResult {
  std::map<std::string, double> metrics;  // the loss plugin's, reduced as it declared; "loss", "global_valid_seqs", ...
  double grad_norm = 0;                   // of the last global batch, before clipping (as NeMo-RL reports it)
  double valid_tokens = 0;                // of all global batches
  int64_t optimizer_steps = 0;
  int64_t skipped_steps = 0;  // the loss or the gradient was not finite: nothing was updated
};

// What the loss needs and the data must bring.
struct LossNeeds {
  bool prev_logprobs = true;
  bool reference_logprobs = true;
  bool positive_tokens = false;  // global_positive_tokens, which Policy counts
};

// Shards batches over the data-parallel ranks and packs them into micro-batches by the policy's config. One thread.
class Policy {
 public:
  // The first workers, whose replies to start_workers these are, have a backend and a loss. Borrows them. Rows of a
  // unit (two for preferences) are neighbours that never part; the config's batch sizes count units.
  Policy(WorkerGroup& workers, const config::PolicyConfig& config, const std::vector<protocol::Start::Reply>& started,
         int64_t rows_per_unit = 1);

  const LossNeeds& loss_needs() const { return needs_; }
  int64_t data_parallel_size() const { return dp_size_; }

  // The number that the calls to come carry as their step: plugins and their errors name it.
  void begin_step(int64_t step) { workers_.set_step(step); }

  // From begin to save, every worker traces what it does, and then writes PATH with its rank before the extension.
  void begin_trace();
  void save_trace(const std::string& path);

  // f32 [T] log-probs of batch.input_ids (i64 [T]) under the given weights. The backend sees what else it wants of the
  // batch (routed_experts). After sampling's filters they are -inf where these remove the token. Those of a
  // reference are always before them: a distribution over the whole vocabulary (NeMo-RL too takes KL unfiltered).
  data::Tensor logprobs(const data::Batch& batch, Weights which, Filters filters = Filters::sampling);

  // One rollout's worth: an optimizer step for every train_global_batch_size rows, in order. Columns: input_ids i64 and
  // those that the loss declared (f32 [T]: advantages, token_mask ...; f32 [B]: sample_mask ...). A loss that declares
  // global_positive_tokens (f32 [B]) gets it beside: in every row, the tokens of the whole global batch that count in
  // it and belong to rows of positive `rewards`.
  TrainResult train(const data::Batch& batch, double lr, double weight_decay);

  // The loss of all the batches together, as they would train in one step, with its metrics, and nothing learnt: how
  // they are cut does not matter. One is in memory at a time; each is made twice, for the loss divides by what all of
  // them count. `complete` adds what is not in them to one that is about to run. Micro-batches of `micro_batch_size`
  // units unless they are formed by tokens. It is not finite where the loss is not.
  std::map<std::string, double> evaluate(const table::Lazy<data::Batch>& batches, int64_t micro_batch_size,
                                         const std::function<void(data::Batch&)>& complete);

  // Keeps a copy of the current weights under `which`.
  void keep(Weights which);
  // optimizer_dir empty: weights alone. Throws Error(plugin) if they cannot be written; the workers go on then. The
  // files are whole when it returns, and on their way to the disk: saved() says when they are there, waiting for
  // `patience` at most, and throws Error(data) with what kept them from it.
  bool saved(std::chrono::milliseconds patience);
  void save(const std::string& weights_dir, const std::string& optimizer_dir);
  void load(const std::string& weights_dir, const std::string& optimizer_dir, Weights which = Weights::current);

 private:
  struct Plan;  // which rows each rank runs, in which micro-batches
  Plan plan(const data::Batch& batch, bool training, int64_t micro_batch_size) const;
  struct Counts;  // of a global batch, which a loss divides by
  protocol::LossBatch part_of(const data::Batch& batch, std::span<const int64_t> rows, const Counts& counts) const;

  WorkerGroup& workers_;
  config::PolicyConfig config_;
  RankRange ranks_;
  std::vector<int64_t> dp_rank_of_;  // world rank -> dp rank
  std::vector<bool> counts_loss_;
  int64_t dp_size_ = 1;
  int64_t sequence_multiple_ = 1, micro_batch_multiple_ = 1;
  int64_t rows_per_unit_ = 1;
  LossNeeds needs_;
  std::vector<std::string> inputs_;  // columns that the backend wants
};

}  // namespace hexad::cluster
