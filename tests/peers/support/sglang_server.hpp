// A real SGLang server on this CPU that somebody else has started: the tests attach to it, and ask it what it holds.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "lib/http/client/transfers.hpp"
#include "lib/server/child.hpp"
#include "tests/modeling/support/temporary_dir.hpp"
#include "tests/peers/support/greedy.hpp"

namespace peers_test {

// What starts a server with SGLang's own flags.
inline std::vector<std::string> sglang_command() {
  const std::string root = std::getenv("HEXAD_SOURCE_DIR");
  return {interpreter("HEXAD_SGLANG_PYTHON"), root + "/tests/peers/sglang_cpu/launch.py"};
}

class SglangServer {
 public:
  using Json = nlohmann::ordered_json;
  using Answer = hexad::http::client::Answer;
  static constexpr const char* kSection = "sglang_cfg";

  explicit SglangServer(const std::string& model_dir) : child_(command(model_dir)) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kStart_s);
    while (!ask("GET", "/model_info").ok()) {
      const auto ended = child_.ended();
      REQUIRE_MESSAGE(!ended, "the server ended with ", ended.value_or(""), ":\n", hexad::server::tail_of(log_));
      REQUIRE_MESSAGE(std::chrono::steady_clock::now() < end, "no server:\n", hexad::server::tail_of(log_));
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  Answer ask(const std::string& method, const std::string& path, const Json& body = Json::object()) {
    std::promise<Answer> came;
    loop_.run([&] {
      hexad::http::client::HttpRequest request;
      request.method = method, request.url = url() + path, request.body = body.dump();
      request.timeout = std::chrono::seconds(60);
      hexad::http::client::ask(transfers_, std::move(request), [&](const Answer& answer) { came.set_value(answer); });
    });
    return came.get_future().get();
  }

  // What it calls its weights.
  std::string version() { return Json::parse(ask("GET", "/model_info").body).at("weight_version").get<std::string>(); }

  // A weight under the name of the checkpoint: its numbers, row after row. Empty: it has none of that name.
  std::vector<float> weight(const std::string& name) {
    const Answer answer = ask("POST", "/get_weights_by_name", {{"name", name}, {"truncate_size", 1'000'000}});
    std::vector<float> numbers;
    if (!answer.ok()) return numbers;
    for (const Json& row : Json::parse(answer.body)) {
      if (row.is_array()) {
        for (const Json& number : row) numbers.push_back(number.get<float>());
      } else {
        numbers.push_back(row.get<float>());
      }
    }
    return numbers;
  }

  // Whether any prompt has begun with tokens of the prefix cache.
  bool used_its_cache() const {
    const std::string mark = "#cached-token: ";
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) {
      const size_t at = line.find(mark);
      if (at != std::string::npos && line[at + mark.size()] != '0') return true;
    }
    return false;
  }

 private:
  hexad::server::Command command(const std::string& model_dir) {
    hexad::server::Command result;
    result.arguments = sglang_command();
    for (const char* flag : {"--dtype", "float32", "--context-length", "512", "--host", "127.0.0.1"})
      result.arguments.emplace_back(flag);
    result.arguments.insert(result.arguments.end(), {"--port", std::to_string(port_), "--model-path", model_dir});
    result.log = log_;
    return result;
  }

  hexad::modeling::TemporaryDir dir_;
  std::string log_ = dir_ / "server.log";
  int port_ = hexad::server::free_port(20'000, 30'000, ::getpid()).value();
  hexad::http::client::EventLoop loop_;
  hexad::http::client::Transfers transfers_{loop_};
  hexad::http::client::StopsLoop stops_{loop_};
  hexad::server::Child child_;
};

// Every tensor of the server is that of `weights`, bit for bit.
inline void check_weights(SglangServer& server, const Weights& weights) {
  for (const auto& [name, tensor] : weights) {
    CAPTURE(name);
    std::vector<float> held = server.weight(name);
    // A row for each token, and then some that no token has.
    if (name == "lm_head.weight" || name.find("embed_tokens") != std::string::npos)
      held.resize(std::min(held.size(), static_cast<size_t>(tensor.numel())));
    REQUIRE(static_cast<int64_t>(held.size()) == tensor.numel());
    CHECK(std::memcmp(held.data(), tensor.contiguous().const_data_ptr(), held.size() * sizeof(float)) == 0);
  }
}

}  // namespace peers_test
