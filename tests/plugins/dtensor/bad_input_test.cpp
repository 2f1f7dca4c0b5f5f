// Wrong models, configurations and batches: each its message, and the instance stays usable.
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr const char* kGate = "model.layers.1.mlp.gate_proj.weight";

std::string error_of(const json& config) {
  one_rank();
  Instance backend(config);
  CHECK(backend.code() != HEXAD_OK);
  return backend.error();
}

// The tiny Llama with one tensor replaced; an undefined one is left out.
void write_changed(const std::filesystem::path& dir, const std::string& name, const at::Tensor& tensor) {
  Weights weights = write_tiny_model(dir, "llama");
  weights[name] = tensor;
  if (!tensor.defined()) weights.erase(name);
  write_weights(dir, weights);
}

struct Loaded {
  TemporaryDir dir;
  std::optional<Instance> backend;
  std::deque<Batch> batches;

  Loaded() {
    write_tiny_model(dir.path(), "llama");
    backend.emplace((one_rank(), policy(dir.path())));
    REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
    batches = backend->batches(make_sequences(3, 8), {3, false, false});
  }
  Batch& batch() { return batches.front(); }
  // Of a train call; then the batch as `mend` leaves it must train.
  std::string error_of_train(const std::function<void()>& mend) {
    double loss = 0;
    CHECK(backend->try_train(batches, 10, 1, 1, loss) == HEXAD_INVALID_ARGUMENT);
    const std::string error = backend->error();
    mend();
    backend->train(batches, 10, 1);
    backend->step(1e-3, 0, 0);
    return error;
  }
};

// The last rank meets a bad batch and leaves: the others' call ends too.
void leaves_the_others(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  Instance backend(policy(dir.path()));
  auto batches = backend.batches(make_sequences(6, 8), {1, false, false});
  const bool last = rank.rank == rank.world - 1;
  if (last) batches[1].ids[0] = 99;
  double loss = 0;
  CHECK(backend.try_train(batches, 10, 1, 1, loss) != HEXAD_OK);
  if (last) CHECK(backend.error().find("input_ids has the token 99") == 0);
  if (!last) CHECK_FALSE(backend.error().empty());
}

// Meshes that do not fit: the same message on every rank of six, and nobody waits.
void wrong_meshes(const Rank& rank) {
  start_runtime(rank);
  const auto error = [](const std::string& family, const json& sizes, const json& more = json::object()) {
    const TemporaryDir dir;
    json model = tiny_config(family);
    model.update(more);
    write_model(dir.path(), model);
    json config = policy(dir.path());
    config["dtensor_cfg"].update(sizes);
    Instance backend(config);
    CHECK(backend.code() != HEXAD_OK);
    return backend.error();
  };
  CHECK(
      error("llama", {{"tensor_parallel_size", 2}, {"context_parallel_size", 2}}) ==
      "policy.dtensor_cfg.tensor_parallel_size 2 x context_parallel_size 2 does not divide the 6 ranks; products that "
      "do: 1, 2, 3, 6");
  CHECK(error("llama", {{"context_parallel_size", 2}, {"dp_replicate_size", 2}}) ==
        "policy.dtensor_cfg.dp_replicate_size is 2, which does not divide the 3 data-parallel ranks; sizes that do: 1, "
        "3");
  CHECK(error("llama", {{"tensor_parallel_size", 2}}) ==
        "tensor parallel size 2 does not divide num_attention_heads = 3; sizes that do: 1, 3");
  CHECK(error("qwen3_moe", {{"tensor_parallel_size", 3}}, {{"moe_intermediate_size", 10}}) ==
        "policy.dtensor_cfg.tensor_parallel_size is 3, which does not divide the width of an expert = 10; sizes that "
        "do: 1, 2, 5, 10");
  CHECK(error("llama", {{"expert_parallel_size", 2}}) ==
        "policy.dtensor_cfg.expert_parallel_size is 2, but the model has no experts: set it to 1");
  const std::string wanted =
      ", wanted a divisor of the 6 ranks that share weights (dp_shard 6 x context_parallel_size 1 x "
      "tensor_parallel_size 1) and of the 4 experts; sizes that are: 1, 2";
  for (const int size : {3, 4})  // the experts do not divide, the ranks do not
    CHECK(error("qwen3_moe", {{"expert_parallel_size", size}}, {{"num_experts", 4}}) ==
          "policy.dtensor_cfg.expert_parallel_size is " + std::to_string(size) + wanted);
  CHECK(
      error("qwen3_moe", {{"expert_parallel_size", 3}, {"tensor_parallel_size", 3}}, {{"num_experts", 6}}) ==
      "policy.dtensor_cfg.expert_parallel_size 3 with tensor_parallel_size 3 wants sequence_parallel: set it to true, "
      "so that every rank sends tokens of its own to the experts");
  CHECK(error("qwen3_moe", {{"automodel_kwargs", {{"backend", {{"dispatcher", "uccl"}}}}}}) ==
        "policy.dtensor_cfg.automodel_kwargs.backend.dispatcher is 'uccl', wanted torch, deepep or hybridep");
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"leaves_the_others", leaves_the_others}, {"wrong_meshes", wrong_meshes}});

}  // namespace

TEST_CASE("a bad batch on one rank ends the others' call with an error") {
  rank_process::run("leaves_the_others", 3, "", {}, std::chrono::seconds(60));
}

TEST_CASE("meshes that do not fit the ranks or the model are refused with the sizes that do") {
  rank_process::run("wrong_meshes", 6, "", {}, std::chrono::seconds(60));
}

TEST_CASE("a model directory that is not one") {
  const TemporaryDir dir;
  CHECK(error_of({{"precision", "float32"}}) == "policy.model_name is missing");
  CHECK(error_of(policy(dir / "nowhere")) == "policy.model_name '" + (dir / "nowhere").string() +
                                                 "': " + (dir / "nowhere/config.json").string() +
                                                 " cannot be read; wanted a local Hugging Face directory");
  std::ofstream(dir / "config.json") << "{\"model_type\": ";
  CHECK(error_of(policy(dir.path())) == (dir / "config.json").string() + " is not a JSON object");
}

TEST_CASE("weights that do not fit the model") {
  const TemporaryDir dir;
  const std::string file = (dir / "model.safetensors").string();
  write_changed(dir.path(), kGate, {});
  CHECK(error_of(policy(dir.path())) ==
        dir.path().string() + ": 1 of 30 weights are missing: model.layers.1.mlp.gate_proj.weight");
  write_changed(dir.path(), kGate, at::zeros({26, 20}));
  CHECK(error_of(policy(dir.path())) == file +
                                            ": 'model.layers.1.mlp.gate_proj.weight' has shape [26, 20], the "
                                            "config wants [27, 20]");
  at::Tensor bad = at::zeros({27, 20});
  bad[3][4] = INFINITY;
  write_changed(dir.path(), kGate, bad);
  CHECK(error_of(policy(dir.path())) == file +
                                            ": 'model.layers.1.mlp.gate_proj.weight' holds 1 values that are not "
                                            "finite; the first is inf at element 64");
  write_tiny_model(dir.path(), "llama");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  CHECK(error_of(policy(dir.path())).find(file) == 0);
  CHECK(error_of(policy(dir.path())).find("truncated") != std::string::npos);
}

TEST_CASE("weights that the model does not use are a warning") {
  const TemporaryDir dir;
  write_changed(dir.path(), "vision.weight", at::zeros({2}));
  logged().clear();
  one_rank();
  CHECK(Instance(policy(dir.path())).code() == HEXAD_OK);
  CHECK(logged() ==
        std::vector<std::string>{(dir / "model.safetensors").string() + ": 'vision.weight' is not used by this model"});
}

TEST_CASE("weights of multi-token prediction are left out with one line, and a checkpoint does not promise them") {
  const TemporaryDir dir;
  json model = tiny_config("deepseek_v3");
  model["num_nextn_predict_layers"] = 2;
  Weights weights = write_model(dir / "model", model);
  const Weights trained = weights;
  for (const char* name : {"3.enorm.weight", "3.eh_proj.weight", "3.mlp.experts.0.up_proj.weight", "4.enorm.weight"})
    weights[std::string("model.layers.") + name] = at::ones({2, 3});
  write_weights(dir / "model", weights);
  logged().clear();
  one_rank();
  Instance backend(policy(dir / "model"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  CHECK(logged() == std::vector<std::string>{(dir / "model").string() +
                                             ": 4 weights of layers beyond the config's 3 (multi-token prediction) are "
                                             "left out"});
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), trained));
  backend.save(dir.path(), HEXAD_CHECKPOINT_MODEL);
  CHECK(json::parse(std::ifstream(dir / "weights" / "config.json")).at("num_nextn_predict_layers") == 0);
  CHECK(same(read_weights(dir / "weights"), trained));
}

TEST_CASE("settings that are wrong or not available") {
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  const auto with = [&](const char* path, const json& value) {
    json config = policy(dir.path());
    config[json::json_pointer(path)] = value;
    return error_of(config);
  };
  CHECK(with("/precision", "int8") == "policy.precision is 'int8', wanted float32, bfloat16 or float16");
  CHECK(with("/dtensor_cfg/expert_parallel_size", -1) ==
        "policy.dtensor_cfg.expert_parallel_size is -1, wanted at least 1");
  CHECK(with("/dtensor_cfg/lora_cfg", {{"enabled", true}}) ==
        "policy.dtensor_cfg.lora_cfg.enabled is true: not available in the dtensor backend yet, wanted false");
  CHECK(with("/dtensor_cfg/context_parallel_size", 0) ==
        "policy.dtensor_cfg.context_parallel_size is 0, wanted at least 1");
  CHECK(with("/optimizer/name", "torch.optim.Lion").find("optimizer 'torch.optim.Lion' is not available") == 0);
  CHECK(with("/optimizer/kwargs/lr", -1).find("optimizer torch.optim.AdamW: kwargs.lr is -1") == 0);
  CHECK(with("/hf_config_overrides", 3) == "policy.hf_config_overrides must be a mapping, got 3");
  CHECK(with("/hf_config_overrides", {{"vocab_size", 38}}).find("has shape [37, 20], the config wants [38, 20]") !=
        std::string::npos);
}

TEST_CASE("a token outside the vocabulary is named, and the next batch trains") {
  Loaded loaded;
  const int64_t kept = loaded.batch().ids[2];
  for (const int64_t id : {int64_t{37}, int64_t{-1}}) {
    loaded.batch().ids[2] = id;
    CHECK(loaded.error_of_train([&] { loaded.batch().ids[2] = kept; }) ==
          "input_ids has the token " + std::to_string(id) +
              ", but the model's vocabulary is [0, 37): the tokenizer is another model's");
  }
}

TEST_CASE("batches whose lengths do not add up") {
  Loaded loaded;
  Batch& batch = loaded.batch();
  const std::vector<int64_t> offsets = batch.offsets;
  const auto mend = [&] {
    batch.offsets = offsets, batch.batch.cu_seqlens = batch.offsets.data(), batch.batch.padded_length = 0;
  };
  batch.offsets.back() -= 1;
  CHECK(loaded.error_of_train(mend) == "cu_seqlens goes from 0 to " + std::to_string(offsets.back() - 1) +
                                           ", wanted 0 to " + std::to_string(offsets.back()));
  batch.offsets[1] = offsets[2] + 1;
  CHECK(loaded.error_of_train(mend) == "cu_seqlens decreases at sequence 1");
  batch.batch.padded_length = 1;
  CHECK(loaded.error_of_train(mend).find("tokens, more than padded_length 1") != std::string::npos);
  batch.shape[0] -= 1;
  CHECK(loaded.error_of_train([&] { batch.shape[0] += 1; }) ==
        "input_ids must be int64 [" + std::to_string(offsets.back()) + "]");
  batch.batch.num_tensors = 0;
  CHECK(loaded.error_of_train([&] { batch.batch.num_tensors = 1; }) == "the batch has no input_ids");
}

TEST_CASE("an output that the backend does not make is refused") {
  Loaded loaded;
  const char* outputs[] = {"values"};
  const hexad_batch* batches[] = {&loaded.batch().batch};
  hexad_train_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_train_args, top_p);
  args.batches = batches;
  args.num_batches = args.num_outputs = 1;
  args.outputs = outputs;
  args.temperature = args.top_p = 1;
  CHECK(vtable().train(loaded.backend->self(), loaded.backend->call(), &args) == HEXAD_UNIMPLEMENTED);
  CHECK(
      loaded.backend->error() ==
      "the output 'values' is not available: wanted logprobs, entropy or logprobs_unfiltered, or sequence_scores of a "
      "reward model");
}
