// Weights by gloo into a real SGLang server, which runs on this CPU, and back: `make test-peers`. HEXAD_SGLANG_PYTHON:
// the interpreter of the environment that tools/setup_peers.sh makes.
#include <arpa/inet.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "plugins/sglang_bridge/generator.hpp"
#include "tests/plugins/native/support/reference.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"
#include "tests/plugins/server_bridge/support/harness.hpp"

extern char** environ;

namespace {

using bridge_test::Json;
using bridge_test::LogLines;
using bridge_test::Wish;
using native_test::Weights;
namespace fs = std::filesystem;

int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET, name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  REQUIRE(::bind(descriptor, reinterpret_cast<sockaddr*>(&name), size) == 0);
  REQUIRE(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size) == 0);
  ::close(descriptor);
  return ntohs(name.sin_port);
}

// A server of the model, until the end of the test.
class RealSglang {
 public:
  static constexpr const char* kSection = "sglang_cfg";

  explicit RealSglang(const std::string& model) : port_(free_port()) {
    const char* python = std::getenv("HEXAD_SGLANG_PYTHON");
    REQUIRE_MESSAGE(python, "HEXAD_SGLANG_PYTHON is not set: run `make test-peers`");
    const std::string launch = std::string(std::getenv("HEXAD_SOURCE_DIR")) + "/tests/peers/sglang_cpu/launch.py";
    std::vector<std::string> words = {python,    launch,      "--model-path",     model,
                                      "--host",  "127.0.0.1", "--port",           std::to_string(port_),
                                      "--dtype", "float32",   "--context-length", "512"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    REQUIRE(::posix_spawn(&pid_, python, nullptr, &attributes, arguments.data(), environ) == 0);
    ::posix_spawnattr_destroy(&attributes);
  }
  ~RealSglang() {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  Json post(const std::string& path, const Json& body) const {
    const std::string text = body.dump();
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET, name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(port_));
    REQUIRE(::connect(descriptor, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
    const std::string request = "POST " + path +
                                " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
                                "application/json\r\nContent-Length: " +
                                std::to_string(text.size()) + "\r\n\r\n" + text;
    REQUIRE(::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
    std::string answer(size_t{1} << 16, '\0');
    size_t used = 0;
    for (ssize_t count; (count = ::recv(descriptor, answer.data() + used, answer.size() - used, 0)) > 0;) {
      used += static_cast<size_t>(count);
      if (used == answer.size()) answer.resize(2 * used);
    }
    ::close(descriptor);
    answer.resize(used);
    return Json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, /*allow_exceptions=*/false);
  }

 private:
  int port_;
  pid_t pid_ = 0;
};

using Harness = bridge_test::BridgeHarness<hexad::sglang::Generator, RealSglang>;

struct Model {
  native_test::TinyModel model{"llama",
                               true,
                               {{"architectures", {"LlamaForCausalLM"}},
                                {"head_dim", 32},
                                {"hidden_size", 128},  // SGLang reads fused weights back by hidden_size / heads
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

// All in buckets of `each` weights.
void update(Harness& bridge, const Weights& weights, int64_t version, size_t each) {
  bridge->update_begin(bridge.service(), version);
  std::vector<std::vector<int64_t>> shapes;
  const std::vector<int64_t> offsets(8, 0);
  std::vector<at::Tensor> data;
  std::vector<DLTensor> views;
  std::vector<hexad_weight_slice> slices;
  shapes.reserve(weights.size()), views.reserve(weights.size());
  for (const auto& [name, tensor] : weights) {
    data.push_back(tensor.contiguous());
    const auto& shape = shapes.emplace_back(data.back().sizes().vec());
    views.push_back({data.back().data_ptr(),
                     {kDLCPU, 0},
                     static_cast<int32_t>(shape.size()),
                     {kDLFloat, 32, 1},
                     shapes.back().data(),
                     nullptr,
                     0});
    slices.push_back({name.c_str(), &views.back(), shape.data(), offsets.data(), shape.data(), views.back().ndim,
                      views.back().dtype});
  }
  for (size_t begin = 0; begin < slices.size(); begin += each) {
    const auto count = static_cast<int64_t>(std::min(each, slices.size() - begin));
    const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, slices.data() + begin, count};
    bridge->update_bucket(bridge.service(), bucket);
  }
  bridge->update_end(bridge.service(), true);
}

void check_read_back(const RealSglang& server, const Weights& weights) {
  for (const auto& [name, tensor] : weights) {
    CAPTURE(name);
    const Json rows = server.post("/get_weights_by_name", {{"name", name}, {"truncate_size", 1 << 30}});
    REQUIRE(rows.is_array());
    std::vector<float> values;
    for (const Json& row : rows) {
      if (!row.is_array())
        values.push_back(row.get<float>());
      else
        for (const Json& value : row) values.push_back(value.get<float>());
    }
    const at::Tensor sent = tensor.contiguous();
    // SGLang pads the vocabulary with rows behind its last token.
    const bool has_padding = name == "lm_head.weight" || name == "model.embed_tokens.weight";
    const auto count = static_cast<size_t>(sent.numel());
    REQUIRE(has_padding ? values.size() >= count : values.size() == count);
    CHECK(std::memcmp(values.data(), sent.const_data_ptr(), count * sizeof(float)) == 0);
  }
}

}  // namespace

TEST_CASE("a real SGLang server holds every weight that gloo has brought, bit for bit, and draws from them") {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const Model model;
  const RealSglang server(model.model.path());
  Harness bridge({&server}, {{"startup_timeout_s", 600}, {"lost_timeout_s", 600}, {"stall_timeout_s", 120}},
                 {{"model_name", model.model.path()},
                  {"precision", "float32"},
                  {"max_total_sequence_length", 512},
                  {"refit_transport", "gloo"}});
  Wish wish{.id = 1, .prompt = native_test::random_prompt(1, 9), .max_new_tokens = 24};
  wish.flags = HEXAD_REQUEST_GREEDY | HEXAD_REQUEST_IGNORE_EOS;
  bridge.run({wish}, 600);
  const auto check = [&](const Weights& weights, int64_t version) {
    check_read_back(server, weights);
    wish.id += 1;
    const auto& sample = bridge.run({wish}, 120).at(wish.id);
    CHECK(sample.spans == std::vector<std::pair<int64_t, int64_t>>{{0, version}});
    std::vector<int32_t> tokens = wish.prompt;
    tokens.insert(tokens.end(), sample.tokens.begin(), sample.tokens.end());
    const std::vector<float> expected = native_test::full_forward(model.model.config, weights, tokens);
    for (size_t i = 0; i < sample.logprobs.size(); ++i)
      CHECK(std::abs(expected[wish.prompt.size() + i] - sample.logprobs[i]) < 2e-3f);
  };
  const Weights second = native_test::random_weights(model.model.config, 99);
  update(bridge, second, 7, 1);
  check(second, 7);
  const Weights third = native_test::random_weights(model.model.config, 100);
  update(bridge, third, 8, 1000);
  check(third, 8);

  // A weight that the model does not have in this shape: the server's words, and the next update is whole again.
  Weights wrong = second;
  const std::string name = "model.norm.weight";
  for (auto& [key, tensor] : wrong)
    if (key == name) tensor = at::ones({3});
  std::string error;
  try {
    update(bridge, wrong, 9, 1);
  } catch (const hexad::sdk::Error& refused) {
    error = refused.what();
  }
  CHECK_MESSAGE(
      error.find("did not take " + name + ": /update_weights_from_distributed: status 400: ") != std::string::npos,
      error);
  update(bridge, second, 10, 4);
  check(second, 10);
}
