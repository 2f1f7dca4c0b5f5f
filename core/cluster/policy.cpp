#include "core/cluster/policy.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/data/batching.hpp"
#include "core/plugin/metric_sum.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// A rank with fewer micro-batches than another gets dummies: it has nothing to compute, and collectives to take part
// in. So does every rank where the number of all is no multiple of `multiple`.
std::vector<protocol::MicroBatch> micro_batches_of(const data::Sharding& sharding, const data::Shard& shard,
                                                   size_t global_batch, std::span<const int64_t> local_of, bool padded,
                                                   int64_t multiple = 1) {
  size_t count = 0;
  for (const data::Shard& any : sharding.shards) count = std::max(count, any.global_batches[global_batch].size());
  count = static_cast<size_t>(round_up(static_cast<int64_t>(count), multiple));
  std::vector<protocol::MicroBatch> list;
  for (const data::MicroBatch& micro_batch : shard.global_batches[global_batch]) {
    list.push_back({.rows = {}, .padded_length = padded ? micro_batch.length : 0});
    for (const int64_t row : micro_batch.rows) list.back().rows.push_back(local_of[row]);
  }
  list.resize(count, {.rows = {}, .padded_length = 0, .dummy = true});
  return list;
}

}  // namespace

struct Policy::Counts {
  double tokens = 0, sequences = 0, positive_tokens = 0;

  // The first position of a sequence has no log-prob and never counts.
  void add(const data::Batch& batch, int64_t row) {
    const double sample = batch.row<float>("sample_mask", row)[0];
    const auto mask = batch.row<float>("token_mask", row);
    double valid = 0;
    for (size_t i = 1; i < mask.size(); ++i) valid += mask[i] * sample;
    sequences += sample;
    tokens += valid;
    if (batch.has("rewards") && batch.row<float>("rewards", row)[0] > 0) positive_tokens += valid;
  }
};

protocol::LossBatch Policy::part_of(const data::Batch& batch, std::span<const int64_t> rows,
                                    const Counts& counts) const {
  protocol::LossBatch part{.batch = batch.select(rows),
                           .micro_batches = {},
                           .global_valid_tokens = counts.tokens,
                           .global_valid_sequences = counts.sequences};
  if (needs_.positive_tokens) {
    const std::vector<float> column(rows.size(), static_cast<float>(counts.positive_tokens));
    part.batch.set("global_positive_tokens", data::Tensor::of(column), data::Axis::sample);
  }
  return part;
}

struct Policy::Plan {
  data::Sharding sharding;
  bool padded = false;
  int64_t multiple = 1;
};

Policy::Policy(WorkerGroup& workers, const config::PolicyConfig& config,
               const std::vector<protocol::Start::Reply>& started, int64_t rows_per_unit)
    : workers_(workers), config_(config), ranks_{0, static_cast<int>(started.size())}, rows_per_unit_(rows_per_unit) {
  for (const protocol::Start::Reply& reply : started) {
    const protocol::BackendInfo& backend = reply.backend.value();
    dp_rank_of_.push_back(backend.dp_rank);
    counts_loss_.push_back(backend.counts_loss);
    dp_size_ = backend.dp_size;
    sequence_multiple_ = std::max<int64_t>(1, backend.sequence_multiple);
    micro_batch_multiple_ = std::max<int64_t>(1, backend.micro_batch_multiple);
    inputs_ = backend.inputs;
  }
  const auto wants = [loss = started.at(0).loss.value_or(protocol::LossInfo{})](const char* name) {
    return std::ranges::find(loss.inputs, name) != loss.inputs.end();
  };
  needs_ = {wants("prev_logprobs"), wants("reference_policy_logprobs"), wants("global_positive_tokens")};
}

Policy::Plan Policy::plan(const data::Batch& batch, bool training, int64_t micro_batch_size) const {
  data::ShardOptions options;
  options.shards = dp_size_;
  const int64_t multiple = std::lcm(sequence_multiple_, config_.make_sequence_length_divisible_by);
  const int64_t units = batch.size() / rows_per_unit_;
  Plan plan;
  plan.multiple = multiple;
  if (training) options.batch_size = std::min(config_.train_global_batch_size, units);
  // Log-probs do not depend on the layout: rows that do not divide over the ranks run plainly, the last ranks fewer.
  const bool divides = units > 0 && units % dp_size_ == 0;
  if (config_.sequence_packing.enabled && (training || divides)) {
    const auto& packing = config_.sequence_packing;
    options.packing = data::SequencePacking{data::packing_algorithm_named(packing.algorithm),
                                            training ? packing.train_mb_tokens : packing.logprob_mb_tokens, multiple,
                                            data::micro_batch_order_named(packing.microbatch_order), 0};
  } else if (config_.dynamic_batching.enabled && (training || divides)) {
    const auto& dynamic = config_.dynamic_batching;
    options.dynamic = data::DynamicBatching{training ? dynamic.train_mb_tokens : dynamic.logprob_mb_tokens,
                                            std::lcm(dynamic.sequence_length_round, multiple)};
    plan.padded = true;
  } else {
    options.micro_batch_size = micro_batch_size;
    options.allow_uneven_shards = !training;
    plan.padded = true;
  }
  plan.sharding = data::shard_units(batch.lengths(), rows_per_unit_, options);
  if (plan.padded) {
    for (data::Shard& shard : plan.sharding.shards) {
      for (auto& global_batch : shard.global_batches) {
        for (data::MicroBatch& micro_batch : global_batch) micro_batch.length = round_up(micro_batch.length, multiple);
      }
    }
  }
  return plan;
}

data::Tensor Policy::logprobs(const data::Batch& batch, Weights which, Filters filters) {
  const Plan plan = this->plan(batch, /*training=*/false, config_.logprob_batch_size);
  const auto replies = workers_.call<protocol::Forward>(ranks_, [&](int rank) {
    const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
    const std::vector<int64_t> rows = shard.rows();
    std::vector<int64_t> local(batch.size(), -1);
    for (size_t i = 0; i < rows.size(); ++i) local[rows[i]] = static_cast<int64_t>(i);
    data::Batch inputs = data::Batch::of_lengths(batch.lengths());
    for (const std::string& name : inputs_)
      if (batch.has(name)) inputs.set(name, batch.at(name), batch.column(name).axis);
    return protocol::Forward{.batch = inputs.select(rows),
                             .micro_batches = micro_batches_of(plan.sharding, shard, 0, local, plan.padded),
                             .outputs = {"logprobs"},
                             .which = static_cast<int32_t>(which),
                             .filters = which != Weights::reference && filters == Filters::sampling};
  });
  data::Tensor result(data::DType::f32, {batch.tokens()});
  const auto out = result.span<float>();
  for (int rank = 0; rank < ranks_.count; ++rank) {
    if (!counts_loss_[rank]) continue;
    const data::Batch& part = replies[rank].outputs;
    const std::vector<int64_t> rows = plan.sharding.shards[dp_rank_of_[rank]].rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto values = part.row<float>("logprobs", static_cast<int64_t>(i));
      std::copy(values.begin(), values.end(), out.begin() + batch.cu_seqlens()[rows[i]]);
    }
  }
  return result;
}

TrainResult Policy::train(const data::Batch& batch, double lr, double weight_decay) {
  const Plan plan = this->plan(batch, /*training=*/true, config_.train_micro_batch_size);
  const size_t global_batches = plan.sharding.shards.at(0).global_batches.size();
  plugin::MetricSum metrics;
  TrainResult result;
  for (size_t step = 0; step < global_batches; ++step) {
    Counts counts;
    for (const data::Shard& shard : plan.sharding.shards) {
      for (const data::MicroBatch& micro_batch : shard.global_batches[step])
        for (const int64_t row : micro_batch.rows) counts.add(batch, row);
    }
    result.valid_tokens += counts.tokens;
    const auto trained = workers_.call<protocol::Train>(ranks_, [&](int rank) {
      const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
      std::vector<int64_t> rows, local(batch.size(), -1);
      for (const data::MicroBatch& micro_batch : shard.global_batches[step]) {
        for (const int64_t row : micro_batch.rows) local[row] = static_cast<int64_t>(rows.size()), rows.push_back(row);
      }
      protocol::Train train{part_of(batch, rows, counts)};
      train.micro_batches = micro_batches_of(plan.sharding, shard, step, local, plan.padded, micro_batch_multiple_);
      return train;
    });
    plugin::MetricSum of_step;
    const auto add_metrics = [&](const auto& replies) {
      for (int rank = 0; rank < ranks_.count; ++rank)
        if (counts_loss_[rank]) of_step.add(replies[rank].metrics);
    };
    add_metrics(trained);
    // Every rank must skip the update or none, whoever had the loss that is not finite.
    const bool discard = !std::isfinite(of_step.values().at("loss"));
    const auto updated = workers_.call(
        ranks_, protocol::Step{.lr = lr,
                               .weight_decay = std::isnan(weight_decay) ? std::nullopt : std::optional(weight_decay),
                               .max_grad_norm = config_.max_grad_norm.value_or(0),
                               .discard = discard});
    add_metrics(updated);
    of_step.set("global_valid_seqs", counts.sequences, plugin::ReduceAs::mean);
    of_step.set("global_valid_toks", counts.tokens, plugin::ReduceAs::mean);
    metrics.merge_global_batch(of_step, global_batches);
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    result.grad_norm = discard ? kNone : updated[0].grad_norm.value_or(kNone);
    const bool skipped = discard || updated[0].skipped;
    result.skipped_steps += skipped;
    result.optimizer_steps += !skipped;
  }
  result.metrics = metrics.values();
  return result;
}

std::map<std::string, double> Policy::evaluate(const table::Lazy<data::Batch>& batches, int64_t micro_batch_size,
                                               const std::function<void(data::Batch&)>& complete) {
  Counts counts;
  for (const data::Batch& batch : batches)
    for (int64_t row = 0; row < batch.size(); ++row) counts.add(batch, row);
  plugin::MetricSum metrics;
  for (data::Batch batch : batches) {
    complete(batch);
    const Plan plan = this->plan(batch, /*training=*/false, micro_batch_size);
    const auto replies = workers_.call<protocol::Evaluate>(ranks_, [&](int rank) {
      const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
      const std::vector<int64_t> rows = shard.rows();
      std::vector<int64_t> local(batch.size(), -1);
      for (size_t i = 0; i < rows.size(); ++i) local[rows[i]] = static_cast<int64_t>(i);
      protocol::Evaluate evaluate{part_of(batch, rows, counts)};
      evaluate.micro_batches = micro_batches_of(plan.sharding, shard, 0, local, plan.padded);
      return evaluate;
    });
    for (int rank = 0; rank < ranks_.count; ++rank)
      if (counts_loss_[rank]) metrics.add(replies[rank].metrics);
  }
  metrics.set("global_valid_seqs", counts.sequences, plugin::ReduceAs::mean);
  metrics.set("global_valid_toks", counts.tokens, plugin::ReduceAs::mean);
  return metrics.values();
}

void Policy::begin_trace() { workers_.call(workers_.all(), protocol::Trace{}); }

void Policy::save_trace(const std::string& path) { workers_.call(workers_.all(), protocol::Trace{.path = path}); }

void Policy::keep(Weights which) { workers_.call(ranks_, protocol::Keep{.which = static_cast<int32_t>(which)}); }

void Policy::save(const std::string& weights_dir, const std::string& optimizer_dir) {
  for (const auto& reply : workers_.call(ranks_, protocol::Save{.weights = weights_dir, .optimizer = optimizer_dir}))
    if (reply.failure) throw Error(ErrorKind::plugin, *reply.failure);
}

bool Policy::saved(std::chrono::milliseconds patience) {
  std::optional<std::string> failure;
  bool done = true;
  for (const auto& reply : workers_.call(ranks_, protocol::Saved{.patience_ms = patience.count()})) {
    if (!failure) failure = reply.failure;
    done = done && reply.done;
  }
  if (failure) throw Error(ErrorKind::data, *failure);
  return done;
}

void Policy::load(const std::string& weights_dir, const std::string& optimizer_dir, Weights which) {
  workers_.call(
      ranks_, protocol::Load{.weights = weights_dir, .optimizer = optimizer_dir, .which = static_cast<int32_t>(which)});
}

}  // namespace hexad::cluster
