// What `hexad plan` says of training beside the highest that ranks on CPUs come to, by the count of the allocator.
#pragma once
#include "tests/plugins/backend/held_bytes.hpp"
#include "tests/support/report.hpp"

namespace backend_test {

struct PeakCase {
  std::string name;
  int world = 1;
  json model;
  json policy;                                             // without model_name and sizes of batches
  int64_t tokens = 512, sequences = 2, micro_batches = 2;  // of a sequence; of a micro-batch; of a data-parallel rank
};

inline json plan_of(json policy, int world, const std::filesystem::path& folder) {
  policy["backend"] = plugin_name();
  const json config = {{"policy", policy},
                       {"sft", {{"max_num_steps", 1}}},
                       {"data", {{"train", {{"dataset_name", "arithmetic"}}}}},
                       {"cluster", {{"gpus_per_node", world}, {"device", "cpu"}}}};
  write_json(folder / "run.yaml", config);
  const toy::Ended ended = toy::run({"plan", (folder / "run.yaml").string(), "--json"});
  const json answer = json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE_MESSAGE(answer.is_object(), ended.out << ended.err);
  return answer;
}

// argument: a folder with policy.json, which takes RANK.json. Two steps, the second of which has all states.
inline void climb(const rank_process::Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path folder = rank.argument;
  const json policy = json::parse(rank_process::text_of((folder / "policy.json").string()));
  Instance backend(policy);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const int64_t tokens = policy.at("max_total_sequence_length"), rows = policy.at("train_micro_batch_size");
  std::vector<Sequence> data(
      static_cast<size_t>(policy.at("micro_batches").get<int64_t>() * rows * backend.info().dp_size));
  // No two begin alike, for prefixes are shared. The second token is a prompt's, which has no gradient.
  for (size_t i = 0; i < data.size(); ++i) {
    for (int64_t token = 0; token < tokens; ++token)
      data[i].ids.push_back(5 + (token * 7 + static_cast<int64_t>(i)) % 500);
    data[i].weight.assign(static_cast<size_t>(tokens), 1.0f);
    data[i].weight[0] = data[i].weight[1] = 0;
  }
  auto batches = backend.batches(data, {static_cast<size_t>(rows), false, false});
  for (int step = 0; step < 2; ++step) {
    backend.train(batches, static_cast<double>(total_tokens(data)), 1.0);
    if (step == 0) backend.step(1e-3, 0.01, 1.0);
  }
  const hexad_memory_stats held = backend.memory();
  write_json(folder / (std::to_string(rank.rank) + ".json"),
             {{"states", held.parameter_bytes + held.gradient_bytes + held.optimizer_bytes},
              {"allocated", held.allocated_bytes},
              {"peak", held.allocated_bytes + held.activation_peak_bytes}});
  runtime_test::runtime().stop();
}

// The rank that climbs highest is within 10 % of the plan's training phase, and its states are within 1 % of theirs.
inline void check_peak(const PeakCase& each) {
  INFO(each.name);
  if (test_device::is_gpu()) return test_report::skipped("peaks are compared with a CPU's kernels");
  const TemporaryDir folder;
  write_json(folder / "config.json", each.model);
  json policy = each.policy;
  policy.update({{"model_name", folder.path().string()},
                 {"random_init_seed", 7},
                 {"max_total_sequence_length", each.tokens},
                 {"train_micro_batch_size", each.sequences},
                 {"train_global_batch_size", each.sequences * each.world * each.micro_batches}});
  const json plan = plan_of(policy, each.world, folder.path());
  policy["micro_batches"] = each.micro_batches;
  write_json(folder / "policy.json", policy);
  if (!rank_process::run("climb", each.world, folder.path().string())) return;
  int64_t states = 0, peak = 0;
  for (int rank = 0; rank < each.world; ++rank) {
    const json held = json::parse(rank_process::text_of((folder / (std::to_string(rank) + ".json")).string()));
    states = std::max(states, held.at("states").get<int64_t>());
    peak = std::max(peak, held.at("peak").get<int64_t>());
  }
  const json& training = plan.at("phases").at(0);
  REQUIRE(training.at("name") == "training");
  CHECK_MESSAGE(training.at("unknown").empty(), training.dump());
  INFO("planned " << plan.dump() << ", held " << states << ", at the peak " << peak);
  const auto near = [](int64_t is, int64_t wanted, double part) {
    return std::abs(static_cast<double>(is - wanted)) <= part * static_cast<double>(wanted);
  };
  CHECK(near(states, plan.at("held").get<int64_t>(), 0.01));
  CHECK(near(peak, training.at("sum").get<int64_t>(), 0.10));
}

}  // namespace backend_test
