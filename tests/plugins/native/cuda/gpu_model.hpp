// A model that the GPU's kernels take, requests for it, and what its samples' log-probs have to be.
#pragma once
#include "plugins/native/model/executor.hpp"
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tight.hpp"

namespace native_test {

inline const at::Device kGpu(at::kCUDA, 0);

// What the kernels can run: heads of 64 or 128.
inline nlohmann::json config_of(const std::string& family, int64_t head_dim, int64_t width = 328) {
  nlohmann::json config = tiny_config(family);
  config.update({{"hidden_size", 256},
                 {"intermediate_size", width},
                 {"num_attention_heads", 6},
                 {"vocab_size", 997},
                 {"num_key_value_heads", 2},
                 {"head_dim", head_dim},
                 {"max_position_embeddings", 2048},
                 {"initializer_range", 0.1}});
  config.erase("sliding_window");
  return config;
}

// Of an executor on the GPU, and a scheduler for it.
inline hexad::native::ExecutorOptions gpu_options(int64_t sequences, int64_t rows) {
  return {.dtype = at::kBFloat16,
          .device = kGpu,
          .deterministic = false,
          .max_length = 512,
          .max_sequences = sequences,
          .max_tokens = rows};
}
inline hexad::native::SchedulerOptions gpu_schedule(int64_t blocks, const hexad::native::ExecutorOptions& options) {
  return {.block_size = options.block_size,
          .num_blocks = blocks,
          .max_sequences = options.max_sequences,
          .max_tokens = options.max_tokens};
}

struct GpuModel {
  hexad::modeling::TemporaryDir dir;
  hexad::modeling::ModelConfig config;
  Weights weights;  // of bf16 values, in fp32 on the CPU

  // `changes`: to config_of().
  GpuModel(const std::string& family, int64_t head_dim, int64_t width = 328,
           const nlohmann::json& changes = nlohmann::json::object()) {
    nlohmann::json json = config_of(family, head_dim, width);
    json.update(changes);
    hexad::modeling::write_file(dir / "config.json", json.dump());
    config = hexad::modeling::load_model_config(dir.path());
    for (const auto& [name, weight] : random_weights(config, 7)) {
      const bool matrix = weight.dim() == 2;
      weights[name] = (matrix ? weight * 0.2 : weight).to(at::kBFloat16).to(at::kFloat);
    }
  }
  Weights on_gpu() const {
    Weights result;
    for (const auto& [name, weight] : weights) result[name] = weight.to(at::kBFloat16).to(kGpu);
    return result;
  }
  Json section(int64_t blocks, int64_t running, int64_t rows) const {
    const double bytes = double(hexad::native::KvCache::bytes_per_block(config, 16, at::kBFloat16));
    return {{"model_name", dir.path().string()},
            {"precision", "bfloat16"},
            {"max_total_sequence_length", 2048},
            {"native_cfg",
             {{"kv_block_size", 16},
              {"kv_cache_gb", (double(blocks) + 0.5) * bytes / 1073741824.0},
              {"max_num_seqs", running},
              {"max_num_batched_tokens", rows}}}};
  }
};

inline std::vector<Ask> groups(int count, int samples, int64_t prompt, int64_t new_tokens, int64_t vocab) {
  std::vector<Ask> asks;
  for (int group = 0; group < count; ++group) {
    for (int sample = 0; sample < samples; ++sample) {
      const uint64_t id = asks.size();
      asks.push_back({.id = id,
                      .prompt = random_prompt(uint64_t(group), prompt + 11 * group, vocab),
                      .max_new_tokens = new_tokens + int64_t(id % 5),
                      .group = uint64_t(group),
                      .seed = 1000 + id});
    }
  }
  return asks;
}

inline void compare(const GpuModel& model, const std::vector<Ask>& asks, const std::map<uint64_t, Answer>& answers,
                    Gap& gap, size_t stride = 1) {
  for (size_t i = 0; i < asks.size(); i += stride) {
    const Answer& answer = answers.at(asks[i].id);
    REQUIRE(answer.error == "");
    std::vector<int32_t> tokens = asks[i].prompt;
    tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
    const std::vector<float> want = full_forward(model.config, model.weights, tokens);
    for (size_t t = 0; t < answer.tokens.size(); ++t) gap.add(answer.logprobs[t], want[asks[i].prompt.size() + t]);
  }
}

}  // namespace native_test
