// policy.batch_invariant of a backend: on a GPU the bits of modeling's batch-invariant forward pass, which are those of
// the native generator (tests/plugins/native/cuda/batch_invariant_test.cpp); elsewhere an error. The weights are those
// that the backend hands out, as a generator gets them: of a file in fp32 it rounds a value halfway between two of
// bf16's in its own way (state_tensor.hpp).
#pragma once
#include <ATen/core/grad_mode.h>

#include "modeling/family/batch_attention.hpp"
#include "modeling/op/logprob_head.hpp"
#include "modeling/op/next_token.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

inline at::Tensor invariant_logprobs(const hexad::modeling::ModelConfig& config, const Weights& weights,
                                     const Sequence& sequence, double temperature) {
  using namespace hexad::modeling;
  const at::NoGradGuard no_grad;
  const at::Device gpu(at::kCUDA, runtime_test::device().device_id);
  const auto lookup = [&](const std::string& name) { return weights.at(name).to(at::kBFloat16).to(gpu); };
  const at::Tensor ids = at::tensor(sequence.ids, at::kLong).to(gpu);
  const at::Tensor offsets = at::tensor(std::vector<int64_t>{0, ids.size(0)}, at::kLong);
  const PackedLayout layout = packed_layout(offsets, gpu);
  PackedAttention attention(config, layout, AttentionKernel::batch_invariant);
  BlockOptions options;
  options.linear.batch_invariant = true;
  const at::Tensor hidden = forward_hidden(config, lookup, ids, layout.positions, attention, options);
  LogprobOptions head;
  head.batch_invariant = true, head.temperature = temperature;
  const at::Tensor targets = next_token_targets(ids, offsets);
  return at_predicted_token(head_logprobs(hidden, lookup(head_weight_name(config)), targets, head).logprobs).cpu();
}

// `config(model, precision)`: the policy.
template <typename Config>
void check_batch_invariant(const Config& config) {
  const TemporaryDir dir;
  json model = tiny_config("qwen3");
  model.update({{"hidden_size", 128},
                {"head_dim", 64},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"intermediate_size", 192},
                {"vocab_size", 64}});
  write_model(dir.path(), model);
  json policy = config(dir.path(), "bfloat16");
  policy["batch_invariant"] = true;
  Instance backend(policy);
  if (runtime_test::device().device_type == kDLCPU) {
    CHECK(backend.code() == HEXAD_UNIMPLEMENTED);
    CHECK_MESSAGE(
        backend.error().find("policy.batch_invariant is true, but this rank computes on cpu, wanted an NVIDIA "
                             "GPU; or set it to false") != std::string::npos,
        backend.error());
    return;
  }
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const auto shape = hexad::modeling::load_model_config(dir.path());
  const Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
  const std::vector<Sequence> data = make_sequences(23, 6);
  for (const double temperature : {1.0, 0.7}) {
    std::vector<at::Tensor> each;
    for (const Sequence& sequence : data) each.push_back(invariant_logprobs(shape, weights, sequence, temperature));
    const at::Tensor want = at::cat(each);
    for (const Packing& packing : {Packing{1, false}, {4, false}, {23, false}, {5, true}}) {
      CAPTURE(packing.sequences);
      auto batches = backend.batches(data, packing);
      CHECK(at::equal(at::cat(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, temperature)), want));
    }
  }
  auto batches = backend.batches(data, {4, false});
  CHECK(std::isfinite(backend.train(batches, 60, 1)));
  CHECK_FALSE(backend.step(1e-3, 0, 1).skipped);
}

}  // namespace backend_test
