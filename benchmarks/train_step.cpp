// Seconds of training steps and log-prob passes of a backend, through the workers that `hexad train` starts.
//
//   train_step MODEL_DIR --hexad build/cuda/bin/hexad --lengths LENGTHS.json [--steps 6] [--logprobs 2] [--seed 1]
//              [--ids FILE] [--save PREFIX] [--trace FILE] [--wait] [key=value ...]
//
// Built by `ninja train_step`; benchmarks/train_step.py runs it beside its peer. LENGTHS.json: the lengths of the
// samples of one optimizer step. Tokens are random, or those of --ids (raw int64); rewards are random, and the first
// quarter of a sample counts as its prompt. Prints one JSON object: seconds of every call, the first one included, loss
// and gradient norm of every step; --save writes PREFIX.logprobs and PREFIX.advantages (raw fp32, the former under the
// initial weights) and PREFIX.ids (int64); --trace writes a Chrome trace of one more step, which is not timed, for each
// rank; with --wait every step waits for a line on standard input and prints a line of its own, so that a peer's steps
// can alternate with those of one process.
#include <chrono>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "app/inference/inference.hpp"
#include "benchmarks/random_rollouts.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/cluster/policy.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "lib/base/json.hpp"

namespace {

using namespace hexad;
using Json = nlohmann::ordered_json;

struct Options {
  std::string hexad, lengths, ids, save, trace;
  inference::InferenceOptions model;
  int64_t steps = 6, logprobs = 2;
  uint64_t seed = 1;
  bool wait = false;
};

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<int64_t> read_ids(const std::string& path, int64_t tokens) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens));
  const auto bytes = static_cast<std::streamsize>(ids.size() * sizeof(int64_t));
  std::ifstream in(path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(ids.data()), bytes) || in.get() != EOF)
    throw std::runtime_error(path + ": wanted " + std::to_string(tokens) + " token ids, int64: those of all samples");
  return ids;
}

template <typename T>
void write_bytes(const std::string& path, std::span<T> values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

Json measure(const Options& options) {
  const config::Resolved resolved = inference::inference_config(options.model);
  const config::RunConfig run = config::run_config(resolved);
  const std::string model_dir = algorithm::find_model(options.model.model_dir);
  const auto lengths = read_json<Json>(options.lengths).get<std::vector<int64_t>>();
  const int64_t vocabulary = read_json<Json>(model_dir + "/config.json").at("vocab_size");
  data::Batch batch = benchmarks::random_rollouts(lengths, vocabulary, options.seed);
  if (!options.ids.empty())
    batch.set("input_ids", data::Tensor::of(read_ids(options.ids, batch.tokens())), data::Axis::token);

  cluster::WorkerGroupOptions worker_options;
  worker_options.world_size = static_cast<int>(run.cluster.gpus_per_node * run.cluster.num_nodes);
  worker_options.program = options.model.program;
  worker_options.call_timeout_s = run.cluster.worker_timeout_s;
  Json result = {{"samples", lengths.size()}, {"tokens", batch.tokens()}, {"ranks", worker_options.world_size}};
  cluster::WorkerGroup workers(options.model.spawner, worker_options);
  std::vector<cluster::protocol::Start::Reply> started;
  result["start_s"] = seconds_of([&] {
    started = cluster::start_workers(workers, resolved.root, run, {run.policy.backend, run.loss_fn.plugin, ""},
                                     model_dir, "");
  });
  result["parameters"] = started.at(0).backend.value().num_parameters;
  cluster::Policy policy(workers, run.policy, started);

  data::Tensor logprobs;
  for (int64_t i = 0; i < std::max<int64_t>(1, options.logprobs); ++i)
    result["logprobs_s"].push_back(seconds_of([&] { logprobs = policy.logprobs(batch, cluster::Weights::current); }));
  batch.set("prev_logprobs", logprobs, data::Axis::token);
  batch.set("generation_logprobs", logprobs, data::Axis::token);
  if (!options.save.empty()) {
    write_bytes(options.save + ".logprobs", logprobs.span<float>());
    write_bytes(options.save + ".advantages", std::as_const(batch).at("advantages").span<float>());
    write_bytes(options.save + ".ids", std::as_const(batch).at("input_ids").span<int64_t>());
  }
  for (int64_t step = 0; step < options.steps; ++step) {
    if (std::string line; options.wait && !std::getline(std::cin, line)) break;
    policy.begin_step(step);
    cluster::TrainResult trained;
    result["train_s"].push_back(seconds_of([&] { trained = policy.train(batch, 1e-6, 0.0); }));
    result["loss"].push_back(trained.metrics.at("loss"));
    result["grad_norm"].push_back(trained.grad_norm);
    if (options.wait)
      std::cout << Json({{"train_s", result["train_s"].back()},
                         {"loss", result["loss"].back()},
                         {"grad_norm", trained.grad_norm}})
                << std::endl;
  }
  if (!options.trace.empty()) {
    policy.begin_trace();
    policy.train(batch, 1e-6, 0.0);
    policy.save_trace(std::filesystem::absolute(options.trace));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  cluster::Spawner spawner;
  Options options;
  CLI::App app("Seconds of training steps and log-prob passes");
  app.add_option("MODEL_DIR", options.model.model_dir, "Hugging Face model directory")->required();
  app.add_option("OVERRIDES", options.model.overrides, "key=value of the config");
  app.add_option("--hexad", options.hexad, "The program whose workers run")->required();
  app.add_option("--lengths", options.lengths, "JSON list: tokens of each sample of a step")->required();
  app.add_option("--steps", options.steps, "Optimizer steps");
  app.add_option("--logprobs", options.logprobs, "Log-prob passes");
  app.add_option("--seed", options.seed, "Of tokens and rewards");
  app.add_option("--ids", options.ids, "Token ids of all samples in place of random ones, raw int64");
  app.add_option("--save", options.save, "PREFIX.logprobs under the initial weights, PREFIX.advantages, PREFIX.ids");
  app.add_option("--trace", options.trace, "Chrome trace of one more step, a file for each rank");
  app.add_flag("--wait", options.wait, "Each step waits for a line on standard input, and prints one");
  CLI11_PARSE(app, argc, argv);
  options.model.program = std::filesystem::canonical(options.hexad);
  options.model.spawner = &spawner;
  try {
    std::cout << json_text(measure(options)) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "train_step: " << error.what() << std::endl;
    return 1;
  }
}
