// The bridge against a real vLLM server, which it starts on this CPU: `make test-peers`. One server serves all cases,
// as each start takes minutes. HEXAD_VLLM_PYTHON: the interpreter of the environment that tools/setup_peers.sh makes.
#include <csignal>
#include <cstdlib>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"
#include "tests/plugins/vllm_bridge/support/harness.hpp"

namespace {

using native_test::Weights;
using vllm_test::Json;
using vllm_test::LogLines;
using vllm_test::Sample;
using vllm_test::Wish;
namespace fs = std::filesystem;

constexpr double kStart_s = 900;

std::string python() {
  const char* path = std::getenv("HEXAD_VLLM_PYTHON");
  REQUIRE_MESSAGE(path, "HEXAD_VLLM_PYTHON is not set: run `make test-peers`");
  return path;
}

// Sizes that vLLM's attention for CPUs has, and a tokenizer, without which no server starts.
struct Model {
  native_test::TinyModel model{"llama",
                               true,
                               {{"architectures", {"LlamaForCausalLM"}},
                                {"head_dim", 32},
                                {"hidden_size", 64},
                                {"num_attention_heads", 4},
                                {"intermediate_size", 96},
                                {"tie_word_embeddings", false},
                                {"torch_dtype", "float32"}}};
  Model() {
    const fs::path source = fs::path(std::getenv("HEXAD_SOURCE_DIR")) / "configs" / "quickstart_model";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(source / name, model.path() + "/" + name);
  }
};

std::vector<Wish> greedy_wishes(uint64_t first_id, int64_t tokens) {
  std::vector<Wish> wishes;
  for (uint64_t i = 0; i < 4; ++i) {
    Wish wish;
    wish.id = first_id + i, wish.group = i,
    wish.prompt = native_test::random_prompt(i + 1, 6 + 5 * static_cast<int>(i));
    wish.max_new_tokens = tokens, wish.flags = HEXAD_REQUEST_GREEDY | HEXAD_REQUEST_IGNORE_EOS;
    wishes.push_back(wish);
  }
  return wishes;
}

// The native generator's answers to the same.
std::map<uint64_t, native_test::Answer> native(const std::string& dir, const Weights& weights,
                                               const std::vector<Wish>& wishes) {
  native_test::Harness harness({{"model_name", dir}, {"precision", "float32"}, {"max_total_sequence_length", 512}});
  harness.update(weights, 1);
  std::vector<native_test::Ask> asks;
  for (const Wish& wish : wishes) {
    asks.push_back({.id = wish.id,
                    .prompt = wish.prompt,
                    .max_new_tokens = wish.max_new_tokens,
                    .group = wish.group,
                    .flags = wish.flags});
  }
  return harness.run(asks);
}

double worst_logprob(const native_test::TinyModel& model, const Weights& weights, const Wish& wish,
                     const Sample& sample) {
  std::vector<int32_t> tokens = wish.prompt;
  tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
  const std::vector<float> expected = native_test::full_forward(model.config, weights, tokens);
  double worst = 0;
  for (size_t i = 0; i < sample.logprobs.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(expected[wish.prompt.size() + i]) - sample.logprobs[i]));
  return worst;
}

void check_greedy(vllm_test::Harness& bridge, const Model& model, const Weights& weights, uint64_t first_id,
                  double seconds) {
  const std::vector<Wish> wishes = greedy_wishes(first_id, 24);
  auto& samples = bridge.run(wishes, seconds);
  const auto expected = native(model.model.path(), weights, wishes);
  for (const Wish& wish : wishes) {
    CAPTURE(wish.id);
    CHECK(samples[wish.id].finish == HEXAD_FINISH_LENGTH);
    CHECK(samples[wish.id].tokens == expected.at(wish.id).tokens);
    CHECK(worst_logprob(model.model, weights, wish, samples[wish.id]) < 2e-3);
  }
}

void update(vllm_test::Harness& bridge, const Weights& weights, int64_t version) {
  bridge->update_begin(bridge.service(), version);
  for (const auto& [name, tensor] : weights) {
    const at::Tensor data = tensor.contiguous();
    std::vector<int64_t> shape = data.sizes().vec(), offsets(shape.size(), 0);
    DLTensor view{
        data.data_ptr(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
    const hexad_weight_slice slice{name.c_str(), &view,     shape.data(), offsets.data(),
                                   shape.data(), view.ndim, view.dtype};
    const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
    bridge->update_bucket(bridge.service(), bucket);
  }
  bridge->update_end(bridge.service(), true);
}

// The number of the leader of the latest server, from the log.
pid_t server_pid() {
  const std::string text = LogLines::all().text();
  const size_t at = text.rfind("(process ");
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + 9));
}

}  // namespace

TEST_CASE("a real vLLM server gives what the native generator does") {
  const Model model;
  vllm_test::Harness bridge(
      vllm_test::Harness::Spawn{{python(), "-m", "vllm.entrypoints.openai.api_server"}},
      {{"startup_timeout_s", kStart_s},
       {"stall_timeout_s", 120},
       {"lost_timeout_s", kStart_s},
       {"enforce_eager", true}},
      {{"model_name", model.model.path()}, {"precision", "float32"}, {"max_total_sequence_length", 512}});

  // Greedy tokens and their log-probs; streaming; log-probs of drawn tokens.
  check_greedy(bridge, model, model.model.weights, 0, kStart_s);
  CHECK(LogLines::all().has("takes requests: vLLM 0.24.0"));
  std::vector<Wish> drawn = greedy_wishes(10, 24);
  for (Wish& wish : drawn) wish.flags = HEXAD_REQUEST_IGNORE_EOS | HEXAD_REQUEST_STREAM, wish.seed = wish.id;
  auto& samples = bridge.run(drawn, 120);
  CHECK(!bridge.partial.empty());
  for (const Wish& wish : drawn) CHECK(worst_logprob(model.model, model.model.weights, wish, samples[wish.id]) < 2e-3);
  // Temperature and a filter: the log-probs are those of what was drawn from.
  Wish sharp = drawn[0];
  sharp.id = 20, sharp.temperature = 0.5, sharp.top_k = 1;
  for (const float logprob : bridge.run({sharp}, 120)[20].logprobs) CHECK(logprob > -1e-5f);

  // Abort.
  Wish endless = drawn[0];
  endless.id = 30, endless.max_new_tokens = 480;
  bridge.submit({endless});
  bridge.partial.clear();
  while (bridge.partial.empty()) bridge.poll(100);
  const uint64_t cancelled[] = {30};
  bridge->cancel(bridge.service(), cancelled);
  CHECK(bridge.finish(30)[30].finish == HEXAD_FINISH_ABORT);

  // Other weights, over disk.
  const Weights second = native_test::random_weights(model.model.config, 99);
  update(bridge, second, 7);
  check_greedy(bridge, model, second, 40, 120);
  CHECK(bridge.samples[40].spans == std::vector<std::pair<int64_t, int64_t>>{{0, 7}});
  CHECK(bridge.samples[40].tokens != bridge.samples[0].tokens);

  // The server is killed in the middle; another one goes on.
  std::vector<Wish> longer = greedy_wishes(50, 300);
  for (Wish& wish : longer) wish.flags |= HEXAD_REQUEST_STREAM;
  bridge.partial.clear();
  bridge.submit(longer);
  while (bridge.partial.empty() || bridge.partial.back().second.tokens.size() < 10) bridge.poll(20);
  REQUIRE(server_pid() > 0);
  ::kill(-server_pid(), SIGKILL);
  auto& ended = bridge.finish(kStart_s);
  const auto expected = native(model.model.path(), second, longer);
  for (const Wish& wish : longer) {
    CAPTURE(wish.id);
    CHECK(ended[wish.id].finals == 1);
    CHECK(ended[wish.id].tokens == expected.at(wish.id).tokens);
    CHECK(worst_logprob(model.model, second, wish, ended[wish.id]) < 2e-3);
  }
  // Its broken connections are seen before its end or after it: the number of requests that it has then is either's.
  CHECK(LogLines::all().has("requests go on elsewhere, or when it is back"));
}
