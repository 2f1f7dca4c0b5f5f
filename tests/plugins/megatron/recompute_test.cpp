// Recomputation changes no gradient, and what is kept between the passes falls as it should.
#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using hexad::modeling::AllocatedBytes;
using rank_process::Rank;

namespace {

json full(const char* method, int layers) {
  return {{"activation_checkpointing", true},
          {"recompute_granularity", "full"},
          {"recompute_method", method},
          {"recompute_num_layers", layers}};
}

json selective(const std::vector<std::string>& modules) {
  return {{"activation_checkpointing", true}, {"recompute_granularity", "selective"}, {"recompute_modules", modules}};
}

const std::vector<std::string> kAll = {"core_attn", "mlp",         "moe",           "layernorm",
                                       "moe_act",   "mla_up_proj", "shared_experts"};

json model_of(const std::string& family) {
  if (family == "deepseek_v3") {
    json model = tiny_config(family);
    model["num_hidden_layers"] = 4;
    return model;
  }
  return has_experts(family) ? expert_model(family) : megatron_model(family);
}

struct Trained {
  double loss = 0;
  Weights grads;
  int64_t peak = 0;  // bytes beyond those before the call
};

Trained train(const json& model, const json& keys) {
  start_runtime(one_rank());
  const TemporaryDir folder;
  at::manual_seed(7);
  write_model(folder.path(), model);
  Instance backend(megatron_policy(folder.path(), keys));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<Sequence> data;
  for (int i = 0; i < 6; ++i)
    for (Sequence& sequence : make_sequences(11, i)) data.push_back(std::move(sequence));
  auto batches = backend.batches(data, {data.size(), false, false});
  Trained result;
  backend.train(batches, 100, kTemperature);  // gradients and leaves are there
  const AllocatedBytes bytes;
  result.loss = backend.train(batches, 100, kTemperature);
  result.peak = bytes.peak();
  result.grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  return result;
}

void same(const Trained& got, const Trained& want) {
  CHECK(got.loss == want.loss);
  REQUIRE(got.grads.size() == want.grads.size());
  for (const auto& [name, grad] : want.grads) CHECK_MESSAGE(at::equal(got.grads.at(name), grad), name);
}

struct Layout {
  std::string family;
  json keys;
};

json with(json keys, const json& more) {
  keys.update(more);
  return keys;
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"llama", with(selective(kAll), {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}})},
      {"llama", with(full("block", 1), {{"pipeline_model_parallel_size", 2}})},
      {"qwen3",
       with(selective({"core_attn", "layernorm"}), {{"context_parallel_size", 2}, {"cp_comm_type", "all_gather"}})},
      {"qwen2_moe", with(selective(kAll), {{"expert_model_parallel_size", 2}})},
      {"qwen3_moe", with(full("uniform", 2), {{"expert_model_parallel_size", 2}})},
      {"llama",
       with(full("uniform", 2), {{"pipeline_model_parallel_size", 2}, {"virtual_pipeline_model_parallel_size", 2}})}};
  return all;
}

void recomputes(const Rank& rank) {
  start_runtime(rank);
  for (const Layout& layout : layouts()) {
    const BoundedErrors errors = three_steps(
        model_of(layout.family), {2, false, false}, [&](const auto& dir) { return megatron_policy(dir, layout.keys); },
        plugin_name(), false, true);
    INFO(layout.family << ", " << layout.keys.dump() << ": loss " << errors.loss << " grad " << errors.grad);
    CHECK(errors.loss <= errors.bound.loss);
    CHECK(errors.grad <= errors.bound.grad);
    CHECK(errors.norm <= errors.bound.norm);
    CHECK(errors.logprob <= errors.bound.logprob);
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"recomputes", recomputes}});

}  // namespace

TEST_CASE("recomputed layers and modules change no bit of loss and gradients") {
  const FixedOrder order;
  for (const char* family : {"llama", "qwen2_moe"}) {
    const json model = model_of(family);
    const Trained plain = train(model, json::object());
    std::vector<json> all = {full("uniform", 1),
                             full("uniform", 3),
                             full("block", 2),
                             selective(kAll),
                             {{"activation_checkpointing", true}}};
    for (const std::string& module : kAll) all.push_back(selective({module}));
    for (const json& keys : all) {
      INFO(family << ", " << keys.dump());
      same(train(model, keys), plain);
    }
  }
}

TEST_CASE("peak memory of activations falls from none over modules and some layers to all layers") {
  json model = model_of("llama");
  model.update({{"hidden_size", 64}, {"intermediate_size", 160}, {"num_hidden_layers", 6}, {"head_dim", 16}});
  const auto peak = [&](const json& keys) { return train(model, keys).peak; };
  const int64_t none = peak(json::object()), core = peak(selective({"core_attn"})),
                more = peak(selective({"core_attn", "mlp", "layernorm"})), block = peak(full("block", 3)),
                uniform = peak(full("uniform", 1));
  INFO("peak bytes: none " << none << ", core_attn " << core << ", core_attn + mlp + layernorm " << more
                           << ", block 3 of 6 " << block << ", uniform 1 " << uniform);
  CHECK(core < none);
  CHECK(more < core);
  CHECK(block < none);
  CHECK(uniform < block);
  CHECK(uniform < more);
}

TEST_CASE("layouts of 2 ranks that recompute agree with plain autograd") { rank_process::run("recomputes", 2); }

TEST_CASE("recompute keys that mean nothing are refused with what would") {
  const TemporaryDir folder;
  start_runtime(one_rank());
  write_model(folder.path(), megatron_model("llama"));
  const auto error_of = [&](json keys) {
    keys["activation_checkpointing"] = true;
    const Instance backend(megatron_policy(folder.path(), keys));
    CHECK(backend.code() == HEXAD_INVALID_ARGUMENT);
    return backend.error();
  };
  CHECK(error_of({{"recompute_granularity", "some"}}) ==
        "policy.megatron_cfg.recompute_granularity is 'some', wanted full or selective");
  CHECK(error_of({{"recompute_method", "each"}}) ==
        "policy.megatron_cfg.recompute_method is 'each', wanted uniform or block");
  CHECK(error_of({{"recompute_num_layers", 0}}) == "policy.megatron_cfg.recompute_num_layers is 0, wanted at least 1");
  CHECK(error_of({{"recompute_granularity", "selective"}, {"recompute_modules", {"core_attn", "attn"}}}) ==
        "policy.megatron_cfg.recompute_modules has \"attn\", wanted core_attn, mlp, moe, layernorm, moe_act, "
        "mla_up_proj or shared_experts");
}
