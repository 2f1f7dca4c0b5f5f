// Seconds of weight updates from a backend to the generators of the same workers, with every weight compared.
//
//   refit MODEL_DIR --hexad build/cuda/bin/hexad [--repeats 5] [--samples 8] [--length 256] [--new-tokens 32]
//         [--lr 1e-3] [--sleep-level 0] [--seed 1] [--trace FILE] [key=value ...]
//
// Built by `ninja refit`; benchmarks/refit.py runs it. Each repeat trains a step on random rollouts, so that the
// weights change, and hands them to the generators. Then a checksum of every weight as it lies in each generator is
// compared with that of the backend's exported weights, and the log-probs of what the generators draw with the
// backend's. Prints one JSON object: seconds of each update at the controller, and within the slowest worker, where the
// clock stops when its device is done. --trace writes a Chrome trace of one more update for each rank. Exit code 1 when
// a check fails.
#include <chrono>
#include <cmath>
#include <iostream>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/inference/inference.hpp"
#include "benchmarks/random_rollouts.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/cluster/policy.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/rollout/generation.hpp"
#include "lib/base/json.hpp"

namespace {

using namespace hexad;
using Json = nlohmann::ordered_json;

constexpr double kMultProbError = 1.02;  // of bf16 passes that round independently; NeMo-RL's bound

struct Options {
  std::string hexad, trace;
  inference::InferenceOptions model;
  int64_t repeats = 5, samples = 8, length = 256, new_tokens = 32;
  int32_t sleep_level = 0;
  double lr = 1e-3;
  uint64_t seed = 1;
};

using Sums = std::map<std::string, cluster::protocol::WeightSums::Sum>;  // by weight

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        resolved_(inference::inference_config(options.model)),
        run_(config::run_config(resolved_)),
        model_dir_(algorithm::find_model(options.model.model_dir)),
        vocabulary_(read_json<Json>(model_dir_ + "/config.json").at("vocab_size")),
        workers_(options.model.spawner, worker_options()) {}

  Json measure() {
    Json result = {{"ranks", workers_.size()}};
    std::vector<cluster::protocol::Start::Reply> started;
    const cluster::Roles roles{run_.policy.backend, run_.loss_fn.plugin, run_.policy.generation.plugin};
    result["start_s"] =
        seconds_of([&] { started = cluster::start_workers(workers_, resolved_.root, run_, roles, model_dir_, ""); });
    result["parameters"] = started.at(0).backend.value().num_parameters;
    cluster::Policy policy(workers_, run_.policy, started);
    const Sums before = workers_.call(workers_.all(), cluster::protocol::WeightSums{})[0].sums;
    for (int64_t repeat = 0; repeat < options_.repeats; ++repeat) {
      policy.begin_step(repeat);
      train(policy, repeat);
      update(result);
    }
    compare_sums(before, result);
    compare_logprobs(policy, result);
    if (!options_.trace.empty()) {
      policy.begin_trace();
      update(result["traced"]);
      policy.save_trace(std::filesystem::absolute(options_.trace));
    }
    return result;
  }

 private:
  cluster::WorkerGroupOptions worker_options() const {
    cluster::WorkerGroupOptions result;
    result.world_size = static_cast<int>(run_.cluster.gpus_per_node * run_.cluster.num_nodes);
    result.program = options_.model.program;
    result.call_timeout_s = run_.cluster.worker_timeout_s;
    return result;
  }

  void train(cluster::Policy& policy, int64_t step) {
    const std::vector<int64_t> lengths(static_cast<size_t>(options_.samples), options_.length);
    data::Batch batch = benchmarks::random_rollouts(lengths, vocabulary_, options_.seed + static_cast<uint64_t>(step));
    const data::Tensor logprobs = policy.logprobs(batch, cluster::Weights::current);
    batch.set("prev_logprobs", logprobs, data::Axis::token);
    batch.set("generation_logprobs", logprobs, data::Axis::token);
    policy.train(batch, options_.lr, 0.0);
    policy.logprobs(batch, cluster::Weights::current);  // read on the host: the device is done with the optimizer
  }

  // What Generation::refit sends, with the workers' answers.
  void update(Json& result) {
    if (options_.sleep_level > 0) {
      workers_.call(workers_.all(), cluster::protocol::Sleep{.level = options_.sleep_level});
      workers_.call(workers_.all(), cluster::protocol::Wake{});
    }
    const cluster::protocol::Refit refit{.version = ++version_};
    std::vector<cluster::protocol::Refit::Reply> replies;
    result["refit_s"].push_back(seconds_of([&] { replies = workers_.call(workers_.all(), refit); }));
    double slowest = 0;
    for (const auto& reply : replies) slowest = std::max(slowest, reply.seconds);
    result["worker_s"].push_back(slowest);
  }

  // Every rank's generator against its own backend's export and the first rank's.
  void compare_sums(const Sums& before, Json& result) {
    const auto replies = workers_.call(workers_.all(), cluster::protocol::WeightSums{});
    int64_t compared = 0, changed = 0, bytes = 0;
    Json differing = Json::array();
    const Sums& first = replies[0].sums;
    for (size_t rank = 0; rank < replies.size(); ++rank) {
      const std::map<std::string, double> reported = replies[rank].metrics.values();
      for (const auto& [name, weight] : replies[rank].sums) {
        const auto found = reported.find("weight_sum/" + name);
        const bool equal =
            found != reported.end() && weight == first.at(name) && static_cast<int64_t>(found->second) == weight.sum;
        if (!equal) differing.push_back(fmt::format("rank {}: {}", rank, name));
        ++compared;
        if (rank > 0) continue;
        changed += weight != before.at(name);
        bytes += weight.bytes;
      }
    }
    result["weight_bytes"] = bytes;
    result["weights_compared"] = compared;
    result["weights_changed"] = changed;
    result["weights_differing"] = differing;
    ok_ = ok_ && compared > 0 && 2 * changed > compared / static_cast<int64_t>(replies.size()) && differing.empty();
  }

  void compare_logprobs(cluster::Policy& policy, Json& result) {
    std::mt19937_64 random(options_.seed);
    std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(options_.samples));
    std::vector<rollout::Request> requests;
    for (std::vector<int32_t>& prompt : prompts) {
      for (int64_t t = 0; t < options_.length; ++t)
        prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary_)));
      requests.push_back({prompt, static_cast<int64_t>(requests.size()), random()});
    }
    rollout::Sampling sampling = rollout::sampling_from(run_.policy, {});
    sampling.ignore_eos = true;
    sampling.max_new_tokens = options_.new_tokens;
    const data::Batch drawn =
        rollout::Generation(workers_, run_.policy.generation.replica_size).generate(requests, sampling);
    std::vector<int64_t> ids, lengths;
    for (int64_t i = 0; i < drawn.size(); ++i) {
      const auto tokens = drawn.row<int32_t>("tokens", i);
      ids.insert(ids.end(), prompts[static_cast<size_t>(i)].begin(), prompts[static_cast<size_t>(i)].end());
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      lengths.push_back(options_.length + drawn.length(i));
    }
    data::Batch batch = data::Batch::of_lengths(lengths);
    batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
    batch.set("logprobs", policy.logprobs(batch, cluster::Weights::current), data::Axis::token);
    double ratios = 0;
    int64_t versions = 0;
    for (int64_t i = 0; i < drawn.size(); ++i) {
      const auto got = drawn.row<float>("logprobs", i), want = std::as_const(batch).row<float>("logprobs", i);
      for (size_t t = 0; t < got.size(); ++t)
        ratios += std::exp(std::abs(double(got[t]) - double(want[t + static_cast<size_t>(options_.length)])));
      versions += drawn.row<int64_t>("weight_version", i)[0] == version_;
    }
    const double error = ratios / static_cast<double>(drawn.tokens());
    result["token_mult_prob_error"] = error;
    ok_ = ok_ && drawn.tokens() > 0 && error < kMultProbError && versions == drawn.size();
    result["ok"] = ok_;
  }

  const Options& options_;
  config::Resolved resolved_;
  config::RunConfig run_;
  std::string model_dir_;
  int64_t vocabulary_;
  cluster::WorkerGroup workers_;
  int64_t version_ = 0;
  bool ok_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  cluster::Spawner spawner;
  Options options;
  CLI::App app("Seconds of weight updates from a backend to generators, with every weight compared");
  app.add_option("MODEL_DIR", options.model.model_dir, "Hugging Face model directory")->required();
  app.add_option("OVERRIDES", options.model.overrides, "key=value of the config");
  app.add_option("--hexad", options.hexad, "The program whose workers run")->required();
  app.add_option("--repeats", options.repeats, "Updates, each after a training step");
  app.add_option("--samples", options.samples, "Of a training step, and of what is generated");
  app.add_option("--length", options.length, "Tokens of a sample, and of a prompt");
  app.add_option("--new-tokens", options.new_tokens, "Generated a prompt");
  app.add_option("--lr", options.lr, "Learning rate");
  app.add_option("--sleep-level", options.sleep_level,
                 "Before each update: 2, the old weights are gone when it begins");
  app.add_option("--seed", options.seed, "Of tokens and rewards");
  app.add_option("--trace", options.trace, "Chrome trace of one more update, a file for each rank");
  CLI11_PARSE(app, argc, argv);
  options.model.program = std::filesystem::canonical(options.hexad);
  options.model.spawner = &spawner;
  std::vector<std::string>& overrides = options.model.overrides;
  overrides.insert(overrides.begin(), {fmt::format("policy.train_global_batch_size={}", options.samples),
                                       "policy.train_micro_batch_size=1", "policy.logprob_batch_size=1"});
  try {
    const Json result = Bench(options).measure();
    std::cout << json_text(result) << std::endl;
    return result.at("ok") ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "refit: " << error.what() << std::endl;
    return 1;
  }
}
