// The scores of a reward model and their gradients in the plain way, and from an instance of a backend.
#pragma once
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

inline json as_reward_model(json config) {
  config["reward_model_cfg"] = {{"enabled", true}};
  return config;
}

// The last one is a token alone, and in packs of two and of three a micro-batch of its own: a context-parallel rank
// holds none of it.
inline std::vector<Sequence> scored_sequences() {
  std::vector<Sequence> data = make_sequences(6, 3);
  data.push_back({{5}, {0.0f}});
  return data;
}

// The model's weights as written, with a score of each hidden feature in the place of the logits.
inline Weights write_reward_model(const std::filesystem::path& dir, const json& model) {
  Weights weights = write_model(dir, model);
  weights.erase("lm_head.weight");
  const int64_t hidden = model.at("hidden_size");
  weights["score.weight"] = at::arange(hidden, at::kFloat).sub(hidden / 2.0 - 0.5).mul(0.05).unsqueeze(0);
  write_weights(dir, weights);
  return weights;
}

struct Scored {
  std::vector<float> scores;
  Weights grads;  // of the sum of scores, each times its place in its micro-batch, from 1 on
};

// One sequence at a time: the score is that of its last hidden state.
inline Scored plain_scores(const std::filesystem::path& dir, const Weights& weights, const std::vector<Sequence>& data,
                           size_t micro_batch) {
  namespace modeling = hexad::modeling;
  const modeling::ModelConfig config = modeling::load_model_config(dir);
  const at::AutoGradMode mode(true);
  Weights leaves;
  std::vector<at::Tensor> inputs;
  for (const auto& [name, weight] : weights) inputs.push_back(leaves[name] = weight.detach().requires_grad_(true));
  const auto lookup = [&](const std::string& name) { return leaves.at(name); };
  Scored result;
  at::Tensor loss = at::zeros({});
  for (size_t i = 0; i < data.size(); ++i) {
    const at::Tensor ids = at::tensor(data[i].ids, at::kLong);
    const auto offsets = at::tensor({int64_t{0}, ids.size(0)}, at::kLong);
    modeling::PackedAttention attention(config, modeling::packed_layout(offsets, at::kCPU));
    const at::Tensor hidden =
        modeling::forward_hidden(config, lookup, ids, at::arange(ids.size(0), at::kLong), attention);
    const at::Tensor score = at::mv(leaves.at("score.weight"), hidden[-1])[0];
    result.scores.push_back(score.item<float>());
    loss = loss + score * static_cast<double>(i % micro_batch + 1);
  }
  const auto found = torch::autograd::grad({loss}, inputs, {}, false, false, /*allow_unused=*/true);
  for (size_t i = 0; const auto& [name, weight] : leaves)
    result.grads[name] = found[i].defined() ? found[i] : at::zeros_like(weight), ++i;
  return result;
}

inline std::vector<float> scores(Instance& backend, std::deque<Batch>& batches) {
  std::vector<float> result;
  std::deque<at::Tensor> made;
  std::deque<DLTensor> views;
  std::deque<hexad_named_tensor> named;
  std::vector<hexad_named_tensor*> outputs;
  std::vector<const hexad_batch*> pointers;
  for (Batch& batch : batches) {
    made.push_back(at::zeros({batch.batch.num_sequences}, at::kFloat));
    views.push_back(hexad::modeling::to_dl(made.back()));
    named.push_back({"sequence_scores", &views.back(), nullptr, HEXAD_AXIS_SAMPLE, 0});
    outputs.push_back(&named.back());
    pointers.push_back(&batch.batch);
  }
  hexad_forward_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
  args.batches = pointers.data();
  args.num_batches = static_cast<int64_t>(pointers.size());
  args.num_outputs = 1;
  args.outputs = outputs.data();
  args.temperature = args.top_p = 1;
  backend.check(vtable().forward(backend.self(), backend.call(), &args));
  for (const at::Tensor& out : made)
    for (int64_t b = 0; b < out.size(0); ++b) result.push_back(out[b].item<float>());
  return result;
}

// d loss / d score of sequence i of a batch is i + 1.
inline void train_scores(Instance& backend, std::deque<Batch>& batches) {
  std::vector<const hexad_batch*> pointers;
  for (const Batch& batch : batches) pointers.push_back(&batch.batch);
  hexad_loss_callback callback{HEXAD_STRUCT_SIZE(hexad_loss_callback, compute), 0, nullptr,
                               [](void*, hexad_call*, int64_t, const hexad_named_tensor* outputs,
                                  DLTensor* const* grads, int64_t count) -> hexad_code {
                                 REQUIRE(count == 1);
                                 CHECK(std::string(outputs[0].name) == "sequence_scores");
                                 CHECK(outputs[0].axis == HEXAD_AXIS_SAMPLE);
                                 const at::Tensor grad = hexad::modeling::from_dl(grads[0], "grad");
                                 grad.copy_(at::arange(1, grad.size(0) + 1, at::kFloat));
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

// Compares both of an instance with the plain way. Ranks without the loss have no scores.
inline void check_scores(Instance& backend, const Scored& want, const std::vector<Sequence>& data,
                         const Packing& packing) {
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  REQUIRE(backend.info().num_outputs == 1);
  CHECK(std::string(backend.info().outputs[0]) == "sequence_scores");
  auto batches = backend.batches(data, packing);
  const std::vector<float> got = scores(backend, batches);
  REQUIRE(got.size() == want.scores.size());
  if (backend.info().pp_size == 1 || backend.info().counts_loss)
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want.scores[i]).epsilon(1e-5));
  train_scores(backend, batches);
  CHECK(relative_error(backend.weights(HEXAD_WEIGHTS_GRADIENTS), want.grads) <= 1e-5);
  backend.step(0, 0, 0, HEXAD_STEP_DISCARD);
}

}  // namespace backend_test
