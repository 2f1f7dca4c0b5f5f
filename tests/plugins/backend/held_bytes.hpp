// The fact `bytes` of a backend's own manifest beside what its ranks hold after a training step.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/support/toy/program.hpp"

namespace backend_test {

struct HeldCase {
  std::string name;
  int world = 1;
  json model;
  json policy;  // without model_name
  // The optimizer reads gradients of another type than ranks reduce: both exist while one is made from the other alone,
  // so that the highest point of a step is compared, and the sum; on one rank, for Gloo takes room there too.
  bool converts_gradients = false;
};

// Sizes of which every rank's part is a multiple of 128 elements, so that nothing is padded; norms are small beside the
// matrices, and activations of a few tokens beside all.
inline json held_model(json model) {
  model.update({{"num_hidden_layers", 4},
                {"hidden_size", 128},
                {"intermediate_size", 384},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"head_dim", 32},
                {"vocab_size", 512},
                {"tie_word_embeddings", false}});
  if (model.contains("moe_intermediate_size")) model["moe_intermediate_size"] = 256;
  if (model.contains("q_lora_rank"))
    model.update({{"q_lora_rank", 128},
                  {"kv_lora_rank", 64},
                  {"qk_nope_head_dim", 32},
                  {"qk_rope_head_dim", 32},
                  {"v_head_dim", 32}});
  return model;
}

// What `hexad config check` says of the manifest's fact.
inline json told_bytes(json policy, int world, const std::filesystem::path& folder) {
  policy["backend"] = plugin_name();
  const json config = {{"policy", policy},
                       {"sft", {{"max_num_steps", 1}}},
                       {"cluster", {{"gpus_per_node", world}, {"device", test_device::is_gpu() ? "cuda" : "cpu"}}}};
  write_json(folder / "run.yaml", config);
  const toy::Ended ended = toy::run({"config", "check", (folder / "run.yaml").string(), "--json"});
  const json answer = json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE_MESSAGE(answer.is_object(), ended.out << ended.err);
  REQUIRE_MESSAGE(answer.contains("bytes"), ended.out);
  return answer["bytes"];
}

// argument: a folder with policy.json, which takes RANK.json.
inline void hold(const rank_process::Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path folder = rank.argument;
  const json policy = json::parse(rank_process::text_of((folder / "policy.json").string()));
  Instance backend(policy);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<Sequence> data(static_cast<size_t>(2 * backend.info().dp_size));
  for (Sequence& sequence : data) {
    sequence.ids = {5, 7, 11, 13, 17, 19, 23, 29};
    sequence.weight = {0, 1, 1, 1, 1, 1, 1, 1};
  }
  auto batches = backend.batches(data, {1, false, false});
  backend.train(batches, static_cast<double>(total_tokens(data)), 1.0);
  backend.step(1e-3, 0.01, 1.0);
  backend.train(batches, static_cast<double>(total_tokens(data)), 1.0);
  const hexad_memory_stats held = backend.memory();
  write_json(folder / (std::to_string(rank.rank) + ".json"), {{"parameters", held.parameter_bytes},
                                                              {"gradients", held.gradient_bytes},
                                                              {"optimizer", held.optimizer_bytes},
                                                              {"beyond", held.activation_peak_bytes}});
  runtime_test::runtime().stop();
}

inline int64_t sum_of_parts(const json& bytes) {
  int64_t sum = 0;
  for (const char* part : {"parameters", "gradients", "optimizer"}) sum += bytes.at(part).get<int64_t>();
  return sum;
}

// The rank that holds most is within 2 % of the fact, in each part.
inline void check_held(const HeldCase& each) {
  INFO(each.name);
  const TemporaryDir folder;
  write_json(folder / "config.json", each.model);
  json policy = each.policy;
  policy["model_name"] = folder.path().string();
  policy["random_init_seed"] = 7;
  write_json(folder / "policy.json", policy);
  const json told = told_bytes(policy, each.world, folder.path());
  if (!rank_process::run("hold", each.world, folder.path().string())) return;
  json most;
  for (int rank = 0; rank < each.world; ++rank) {
    json held = json::parse(rank_process::text_of((folder / (std::to_string(rank) + ".json")).string()));
    if (most.is_null() || sum_of_parts(held) > sum_of_parts(most)) most = std::move(held);
  }
  INFO("told " << told.dump() << ", held " << most.dump());
  const auto near = [](double is, double wanted, double part) { return std::abs(is - wanted) <= part * wanted; };
  for (const char* part : {"parameters", "gradients", "optimizer"}) {
    if (each.converts_gradients && part == std::string("gradients")) continue;
    INFO(part);
    CHECK(near(most.at(part).get<double>(), told.at(part).get<double>(), 0.02));
  }
  if (each.converts_gradients)
    CHECK(near(static_cast<double>(sum_of_parts(most)) + most.at("beyond").get<double>(),
               static_cast<double>(sum_of_parts(told)), 0.05));
}

}  // namespace backend_test
