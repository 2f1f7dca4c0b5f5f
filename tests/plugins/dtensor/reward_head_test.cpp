// The reward head: scores of sequences and their gradients against the plain way, packed and padded, saved and loaded.
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/backend/temporary_dir.hpp"

using namespace backend_test;
namespace modeling = hexad::modeling;

namespace {

json reward_policy(const std::filesystem::path& dir) {
  json config = policy(dir, "float32");
  config["reward_model_cfg"] = {{"enabled", true}};
  return config;
}

// The score of one sequence: that of its last hidden state.
at::Tensor score(const modeling::ModelConfig& config, const Weights& weights, const Sequence& sequence) {
  const at::Tensor ids = at::tensor(sequence.ids, at::kLong);
  const auto offsets = at::tensor({int64_t{0}, ids.size(0)}, at::kLong);
  modeling::PackedAttention attention(config, modeling::packed_layout(offsets, at::kCPU));
  const auto lookup = [&](const std::string& name) { return weights.at(name); };
  const at::Tensor hidden =
      modeling::forward_hidden(config, lookup, ids, at::arange(ids.size(0), at::kLong), attention);
  return at::mv(weights.at("score.weight"), hidden[-1])[0];
}

std::vector<float> scores(Instance& backend, std::deque<Batch>& batches) {
  std::vector<float> result;
  for (Batch& batch : batches) {
    at::Tensor out = at::zeros({batch.batch.num_sequences}, at::kFloat);
    DLTensor dl = modeling::to_dl(out);
    hexad_named_tensor named{"sequence_scores", &dl, nullptr, HEXAD_AXIS_SAMPLE, 0};
    hexad_named_tensor* outputs[] = {&named};
    const hexad_batch* pointers[] = {&batch.batch};
    hexad_forward_args args{};
    args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
    args.batches = pointers;
    args.num_batches = args.num_outputs = 1;
    args.outputs = outputs;
    args.temperature = args.top_p = 1;
    backend.check(vtable().forward(backend.self(), backend.call(), &args));
    for (int64_t b = 0; b < out.size(0); ++b) result.push_back(out[b].item<float>());
  }
  return result;
}

// d loss / d score of sequence i of a batch is i + 1.
void train(Instance& backend, std::deque<Batch>& batches) {
  std::vector<const hexad_batch*> pointers;
  for (const Batch& batch : batches) pointers.push_back(&batch.batch);
  hexad_loss_callback callback{HEXAD_STRUCT_SIZE(hexad_loss_callback, compute), 0, nullptr,
                               [](void*, hexad_call*, int64_t, const hexad_named_tensor* outputs,
                                  DLTensor* const* grads, int64_t count) -> hexad_code {
                                 REQUIRE(count == 1);
                                 CHECK(std::string(outputs[0].name) == "sequence_scores");
                                 CHECK(outputs[0].axis == HEXAD_AXIS_SAMPLE);
                                 float* grad = HEXAD_F32(grads[0]);
                                 for (int64_t i = 0; i < grads[0]->shape[0]; ++i) grad[i] = static_cast<float>(i + 1);
                                 return HEXAD_OK;
                               }};
  const char* outputs[] = {"sequence_scores"};
  hexad_train_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_train_args, top_p);
  args.batches = pointers.data();
  args.num_batches = static_cast<int64_t>(pointers.size());
  args.outputs = outputs;
  args.num_outputs = 1;
  args.loss = &callback;
  args.temperature = args.top_p = 1;
  backend.check(vtable().train(backend.self(), backend.call(), &args));
}

void refuses_cut_head(const rank_process::Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "mistral");
  for (const char* size : {"tensor_parallel_size", "context_parallel_size"}) {
    json config = reward_policy(dir.path());
    config["dtensor_cfg"][size] = 2;
    Instance backend(config);
    CHECK(backend.code() == HEXAD_UNIMPLEMENTED);
    CHECK_MESSAGE(backend.error().find("the reward head works on data-parallel ranks alone") != std::string::npos,
                  backend.error());
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"refuses_cut_head", refuses_cut_head}});

}  // namespace

TEST_CASE("scores and their gradients are those of the last token's hidden state, tied or not, packed or padded") {
  for (const char* family : {"llama", "qwen3"}) {
    CAPTURE(family);
    const TemporaryDir dir;
    Weights weights = write_tiny_model(dir.path(), family);
    weights.erase("lm_head.weight");
    weights["score.weight"] = at::arange(20, at::kFloat).sub(9.5).mul(0.05).unsqueeze(0);
    write_weights(dir.path(), weights);
    const modeling::ModelConfig config = modeling::load_model_config(dir.path());
    const std::vector<Sequence> data = make_sequences(5, 3);

    const at::AutoGradMode mode(true);
    Weights leaves;
    std::vector<at::Tensor> inputs, wanted;
    for (const auto& [name, weight] : weights) inputs.push_back(leaves[name] = weight.detach().requires_grad_(true));
    at::Tensor loss = at::zeros({});
    for (size_t i = 0; i < data.size(); ++i) {
      wanted.push_back(score(config, leaves, data[i]));
      loss = loss + wanted.back() * static_cast<double>(i + 1);
    }
    const auto found = torch::autograd::grad({loss}, inputs, {}, false, false, /*allow_unused=*/true);
    Weights grads;
    for (size_t i = 0; const auto& [name, weight] : leaves)
      grads[name] = found[i].defined() ? found[i] : at::zeros_like(weight), ++i;

    Instance backend((one_rank(), reward_policy(dir.path())));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    REQUIRE(backend.info().num_outputs == 1);
    CHECK(std::string(backend.info().outputs[0]) == "sequence_scores");
    for (const bool padded : {false, true}) {
      auto batches = backend.batches(data, {8, padded, false});
      const std::vector<float> got = scores(backend, batches);
      REQUIRE(got.size() == data.size());
      for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i].item<float>()).epsilon(1e-5));
      train(backend, batches);
      CHECK(relative_error(backend.weights(HEXAD_WEIGHTS_GRADIENTS), grads) <= 1e-5);
      backend.step(0, 0, 0, HEXAD_STEP_DISCARD);
    }
  }
}

TEST_CASE("a model without a reward head gets a random one, the same for one seed, and keeps it when saved") {
  const TemporaryDir dir, saved;
  write_tiny_model(dir.path(), "llama");
  const auto score_of = [&](int64_t seed) {
    json config = reward_policy(dir.path());
    config["random_init_seed"] = seed;
    Instance backend((one_rank(), config));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    backend.save(saved.path(), HEXAD_CHECKPOINT_MODEL);
    return backend.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight");
  };
  const at::Tensor other = score_of(4), third = score_of(3);
  CHECK(score_of(3).equal(third));
  CHECK_FALSE(other.equal(third));
  CHECK(third.sizes() == at::IntArrayRef({1, 20}));

  Instance again((one_rank(), reward_policy(saved.path() / "weights")));
  REQUIRE_MESSAGE(again.code() == HEXAD_OK, again.error());
  CHECK(again.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight").equal(third));
  std::ifstream in(saved.path() / "weights/config.json");
  const json config = json::parse(in);
  CHECK(config.at("architectures") == json::array({"LlamaForSequenceClassification"}));
  CHECK(config.at("num_labels") == 1);
}

TEST_CASE("a reward model has scores and no log-probs, and scores no empty sequence") {
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  Instance backend((one_rank(), reward_policy(dir.path())));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<Sequence> with_empty = make_sequences(2, 3);
  with_empty.push_back(Sequence{});
  auto batches = backend.batches(with_empty, {8, false, false});
  const hexad_batch* pointers[] = {&batches[0].batch};
  float out[3] = {};
  int64_t count = 3;
  DLTensor dl{out, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &count, nullptr, 0};
  hexad_named_tensor named{"sequence_scores", &dl, nullptr, HEXAD_AXIS_SAMPLE, 0};
  hexad_named_tensor* outputs[] = {&named};
  hexad_forward_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
  args.batches = pointers;
  args.num_batches = args.num_outputs = 1;
  args.outputs = outputs;
  args.temperature = args.top_p = 1;
  CHECK(vtable().forward(backend.self(), backend.call(), &args) == HEXAD_INVALID_ARGUMENT);
  CHECK(backend.error().find("sequence 2 is empty: a score needs a token") != std::string::npos);
}

TEST_CASE("a reward head on tensor- or context-parallel ranks is refused") { rank_process::run("refuses_cut_head", 2); }
