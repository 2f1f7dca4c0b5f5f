#include "core/cluster/policy.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "lib/base/error.hpp"
#include "core/data/units.hpp"
#include "core/plugin/metric_sum.hpp"

namespace hexad::cluster {
namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// A rank with fewer micro-batches than another gets dummies: it has nothing to compute, and collectives to take part
// in. So does every rank where the number of all is no multiple of `multiple`.
Json micro_batch_lists(const data::Sharding& sharding, const data::Shard& shard, size_t global_batch,
                       std::span<const int64_t> local_of, bool padded, int64_t multiple = 1) {
  size_t count = 0;
  for (const data::Shard& any : sharding.shards) count = std::max(count, any.global_batches[global_batch].size());
  count = static_cast<size_t>(round_up(static_cast<int64_t>(count), multiple));
  Json lists = Json::array();
  for (const data::MicroBatch& micro_batch : shard.global_batches[global_batch]) {
    Json rows = Json::array();
    for (const int64_t row : micro_batch.rows) rows.push_back(local_of[row]);
    lists.push_back({{"rows", rows}, {"padded_length", padded ? micro_batch.length : 0}});
  }
  while (lists.size() < count) lists.push_back({{"rows", Json::array()}, {"padded_length", 0}, {"dummy", true}});
  return lists;
}

// Tokens that the loss counts: the first position of a sequence has no log-prob and never counts.
double valid_tokens(const data::Batch& batch, std::span<const int64_t> rows) {
  double sum = 0;
  for (const int64_t row : rows) {
    const float sample = batch.row<float>("sample_mask", row)[0];
    const auto mask = batch.row<float>("token_mask", row);
    for (size_t i = 1; i < mask.size(); ++i) sum += static_cast<double>(mask[i]) * sample;
  }
  return sum;
}

double valid_sequences(const data::Batch& batch, std::span<const int64_t> rows) {
  double sum = 0;
  for (const int64_t row : rows) sum += batch.row<float>("sample_mask", row)[0];
  return sum;
}

}  // namespace

struct Policy::Plan {
  data::Sharding sharding;
  bool padded = false;
  int64_t multiple = 1;
};

Policy::Policy(WorkerGroup& workers, const config::PolicyConfig& config, std::vector<Json> started,
               int64_t rows_per_unit)
    : workers_(workers), config_(config), ranks_{0, static_cast<int>(started.size())}, rows_per_unit_(rows_per_unit) {
  for (const Json& answer : started) {
    const Json& backend = answer.at("backend");
    dp_rank_of_.push_back(backend.at("dp_rank"));
    counts_loss_.push_back(backend.at("counts_loss").get<int64_t>() != 0);
    dp_size_ = backend.at("dp_size");
    sequence_multiple_ = std::max<int64_t>(1, backend.at("sequence_multiple"));
    micro_batch_multiple_ = std::max<int64_t>(1, backend.at("micro_batch_multiple"));
    inputs_ = backend.at("inputs").get<std::vector<std::string>>();
  }
  const Json& loss = started.at(0).value("loss", Json::object());
  const auto wants = [&](const char* name) {
    const Json inputs = loss.value("inputs", Json::array());
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  };
  needs_ = {wants("prev_logprobs"), wants("reference_policy_logprobs")};
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
  if (config_.sequence_packing.enabled && (training || units >= dp_size_)) {
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

data::Tensor Policy::logprobs(const data::Batch& batch, Weights which) {
  const Plan plan = this->plan(batch, /*training=*/false, config_.logprob_batch_size);
  const auto answers = workers_.call(ranks_, "forward", [&](int rank) {
    const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
    const std::vector<int64_t> rows = shard.rows();
    std::vector<int64_t> local(batch.size(), -1);
    for (size_t i = 0; i < rows.size(); ++i) local[rows[i]] = static_cast<int64_t>(i);
    data::Batch inputs = data::Batch::of_lengths(batch.lengths());
    for (const std::string& name : inputs_)
      if (batch.has(name)) inputs.set(name, batch.at(name), batch.column(name).axis);
    Message message;
    message.put("batch", inputs.select(rows));
    message.header["micro_batches"] = micro_batch_lists(plan.sharding, shard, 0, local, plan.padded);
    message.header["outputs"] = {"logprobs"};
    message.header["which"] = static_cast<int>(which);
    return message;
  });
  data::Tensor result(data::DType::f32, {batch.tokens()});
  const auto out = result.span<float>();
  for (int rank = 0; rank < ranks_.count; ++rank) {
    if (!counts_loss_[rank]) continue;
    const data::Batch part = answers[rank].batch("outputs");
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
    std::vector<int64_t> all_rows;
    for (const data::Shard& shard : plan.sharding.shards) {
      for (const data::MicroBatch& micro_batch : shard.global_batches[step]) {
        all_rows.insert(all_rows.end(), micro_batch.rows.begin(), micro_batch.rows.end());
      }
    }
    const double tokens = valid_tokens(batch, all_rows), sequences = valid_sequences(batch, all_rows);
    result.valid_tokens += tokens;
    const auto answers = workers_.call(ranks_, "train", [&](int rank) {
      const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
      std::vector<int64_t> rows, local(batch.size(), -1);
      for (const data::MicroBatch& micro_batch : shard.global_batches[step]) {
        for (const int64_t row : micro_batch.rows) local[row] = static_cast<int64_t>(rows.size()), rows.push_back(row);
      }
      Message message;
      message.put("batch", batch.select(rows));
      message.header["micro_batches"] =
          micro_batch_lists(plan.sharding, shard, step, local, plan.padded, micro_batch_multiple_);
      message.header["global_valid_tokens"] = tokens;
      message.header["global_valid_sequences"] = sequences;
      return message;
    });
    plugin::MetricSum of_step;
    const auto add_metrics = [&](const std::vector<Message>& answers) {
      for (int rank = 0; rank < ranks_.count; ++rank) {
        if (counts_loss_[rank]) of_step.add(answers[rank].header.at("metrics"));
      }
    };
    add_metrics(answers);
    // Every rank must skip the update or none, whoever had the loss that is not finite.
    const bool discard = !std::isfinite(of_step.values().at("loss"));
    Message update;
    update.header = {{"lr", lr},
                     {"weight_decay", std::isnan(weight_decay) ? Json() : Json(weight_decay)},
                     {"max_grad_norm", config_.max_grad_norm.value_or(0)},
                     {"discard", discard}};
    const auto updated = workers_.call(ranks_, "step", update);
    add_metrics(updated);
    of_step.set("global_valid_seqs", sequences, plugin::ReduceAs::mean);
    of_step.set("global_valid_toks", tokens, plugin::ReduceAs::mean);
    metrics.merge_global_batch(of_step, global_batches);
    const Json& grad_norm = updated[0].header.at("grad_norm");
    result.grad_norm =
        discard || grad_norm.is_null() ? std::numeric_limits<double>::quiet_NaN() : grad_norm.get<double>();
    const bool skipped = discard || updated[0].header.at("skipped").get<bool>();
    result.skipped_steps += skipped;
    result.optimizer_steps += !skipped;
  }
  result.metrics = metrics.values();
  return result;
}

std::map<std::string, double> Policy::evaluate(const data::Batch& batch, int64_t micro_batch_size) {
  const Plan plan = this->plan(batch, /*training=*/false, micro_batch_size);
  std::vector<int64_t> all_rows(batch.size());
  std::iota(all_rows.begin(), all_rows.end(), 0);
  const double tokens = valid_tokens(batch, all_rows), sequences = valid_sequences(batch, all_rows);
  const auto answers = workers_.call(ranks_, "evaluate", [&](int rank) {
    const data::Shard& shard = plan.sharding.shards[dp_rank_of_[rank]];
    const std::vector<int64_t> rows = shard.rows();
    std::vector<int64_t> local(batch.size(), -1);
    for (size_t i = 0; i < rows.size(); ++i) local[rows[i]] = static_cast<int64_t>(i);
    Message message;
    message.put("batch", batch.select(rows));
    message.header["micro_batches"] = micro_batch_lists(plan.sharding, shard, 0, local, plan.padded);
    message.header["global_valid_tokens"] = tokens;
    message.header["global_valid_sequences"] = sequences;
    return message;
  });
  plugin::MetricSum metrics;
  for (int rank = 0; rank < ranks_.count; ++rank) {
    if (counts_loss_[rank]) metrics.add(answers[rank].header.at("metrics"));
  }
  metrics.set("global_valid_seqs", sequences, plugin::ReduceAs::mean);
  metrics.set("global_valid_toks", tokens, plugin::ReduceAs::mean);
  return metrics.values();
}

void Policy::begin_trace() {
  Message message;
  message.header["path"] = nullptr;
  workers_.call_all("trace", message);
}

void Policy::save_trace(const std::string& path) {
  Message message;
  message.header["path"] = path;
  workers_.call_all("trace", message);
}

void Policy::keep(Weights which) {
  Message message;
  message.header["which"] = static_cast<int>(which);
  workers_.call(ranks_, "keep", message);
}

void Policy::save(const std::string& weights_dir, const std::string& optimizer_dir) {
  Message message;
  message.header = {{"weights", weights_dir}, {"optimizer", optimizer_dir}};
  for (const Message& answer : workers_.call(ranks_, "save", message)) {
    if (answer.header.contains("failure"))
      throw Error(ErrorKind::plugin, answer.header.at("failure").get<std::string>());
  }
}

bool Policy::saved(std::chrono::milliseconds patience) {
  Message message;
  message.header = {{"patience_ms", patience.count()}};
  std::string failure;
  bool done = true;
  for (const Message& answer : workers_.call(ranks_, "saved", message)) {
    if (answer.header.contains("failure") && failure.empty()) failure = answer.header.at("failure");
    done = done && answer.header.value("done", true);
  }
  if (!failure.empty()) throw Error(ErrorKind::data, failure);
  return done;
}

void Policy::load(const std::string& weights_dir, const std::string& optimizer_dir, Weights which) {
  Message message;
  message.header = {{"weights", weights_dir}, {"optimizer", optimizer_dir}, {"which", static_cast<int>(which)}};
  workers_.call(ranks_, "load", message);
}

}  // namespace hexad::cluster
