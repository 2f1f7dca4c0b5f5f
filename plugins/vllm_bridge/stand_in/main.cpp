// vllm_stand_in --model DIR --port PORT [options of vLLM, which it ignores]: speaks what the bridge uses of vLLM's HTTP
// over a model of no size. The conformance kit verifies the bridge with it where there is no vLLM.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "plugins/vllm_bridge/stand_in/http_server.hpp"
#include "plugins/vllm_bridge/stand_in/model.hpp"

namespace hexad::vllm::stand_in {
namespace {

using Json = nlohmann::ordered_json;

class Server {
 public:
  Server(const std::string& model_dir, std::string api_key)
      : api_key_(std::move(api_key)), model_(std::make_shared<Model>(model_dir)) {}

  void handle(const Connection& to, const Request& request) {
    try {
      answer(to, request);
    } catch (const Gone&) {
      throw;
    } catch (const std::exception& error) {
      to.reply(400, Json{{"error", {{"message", error.what()}, {"code", 400}}}}.dump());
    }
  }

 private:
  void answer(const Connection& to, const Request& request) {
    const std::string path = request.path.substr(0, request.path.find('?'));
    if (path == "/health") return to.reply(200, "");
    if (path == "/version") return to.reply(200, R"({"version":"0.24.0"})");
    if (path == "/inference/v1/generate") return generate(to, request);
    if (path == "/is_paused") return to.reply(200, Json{{"is_paused", paused_.load()}}.dump());
    if (path == "/pause") return paused_ = true, to.reply(200, R"({"status":"paused"})");
    if (path == "/resume") return paused_ = false, to.reply(200, R"({"status":"resumed"})");
    if (path == "/reset_prefix_cache") return to.reply(200, R"({"success":true})");
    if (path == "/server_info")
      return to.reply(200, R"({"vllm_config":{"model_config":{"logprobs_mode":"processed_logprobs"}}})");
    if (path == "/collective_rpc") {
      const auto dir = Json::parse(request.body).at("kwargs").at("weights_path").get<std::string>();
      auto loaded = std::make_shared<Model>(dir);
      const std::lock_guard lock(mutex_);
      model_ = std::move(loaded);
      return to.reply(200, R"({"results":[null]})");
    }
    to.reply(404, R"({"error":{"message":"Not Found","code":404}})");
  }

  std::shared_ptr<const Model> model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }

  void generate(const Connection& to, const Request& request) {
    if (request.key != api_key_) return to.reply(401, R"({"error":{"message":"Unauthorized","code":401}})");
    const Json body = Json::parse(request.body), asked = body.at("sampling_params");
    Sampling sampling;
    sampling.temperature = asked.value("temperature", 1.0), sampling.top_p = asked.value("top_p", 1.0);
    sampling.min_p = asked.value("min_p", 0.0), sampling.top_k = asked.value("top_k", int64_t{0});
    sampling.seed = asked.contains("seed") ? asked.at("seed").get<uint64_t>() : std::random_device()();
    auto tokens = body.at("token_ids").get<std::vector<int32_t>>();
    auto stops = asked.value("stop_token_ids", std::set<int32_t>());
    if (!asked.value("ignore_eos", false)) stops.merge(std::set(model()->eos()));
    const int64_t most = asked.value("max_tokens", int64_t{16});
    to.begin_events();
    for (int64_t i = 0; i < most; ++i) {
      do to.check_alive();
      while (waits_for_resume());
      const Draw draw = model()->next(tokens, sampling, i);
      tokens.push_back(draw.token);
      const bool stop = stops.contains(draw.token), last = stop || i + 1 == most;
      const Json logprob = {{"token", "token_id:" + std::to_string(draw.token)}, {"logprob", draw.logprob}};
      const Json choice = {{"index", 0},
                           {"token_ids", {draw.token}},
                           {"logprobs", {{"content", {logprob}}}},
                           {"finish_reason", stop   ? Json("stop")
                                             : last ? Json("length")
                                                    : Json()}};
      to.event(Json{{"request_id", body.value("request_id", "")}, {"choices", {choice}}}.dump());
      if (last) break;
    }
    to.end_events();
  }

  bool waits_for_resume() const {
    if (paused_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return paused_;
  }

  std::string api_key_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Model> model_;
  std::atomic<bool> paused_{false};
};

int run(int argc, char** argv) {
  std::string model;
  int port = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == std::string("--model")) model = argv[i + 1];
    if (argv[i] == std::string("--port")) port = std::atoi(argv[i + 1]);
  }
  const char* key = std::getenv("VLLM_API_KEY");
  Server server(model, key ? key : "");
  serve(port, [&](const Connection& to, const Request& request) { server.handle(to, request); });
}

}  // namespace
}  // namespace hexad::vllm::stand_in

int main(int argc, char** argv) {
  try {
    return hexad::vllm::stand_in::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vllm_stand_in: %s\n", error.what());
    return 1;
  }
}
