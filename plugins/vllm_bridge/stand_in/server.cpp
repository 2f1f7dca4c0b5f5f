#include "plugins/vllm_bridge/stand_in/server.hpp"

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace hexad::vllm::stand_in {

namespace {

using Json = nlohmann::ordered_json;

Generation read_generation(const Json& body, const std::set<int32_t>& eos) {
  const Json& asked = body.at("sampling_params");
  Generation made;
  made.name = body.value("request_id", "");
  made.tokens = body.at("token_ids").get<std::vector<int32_t>>();
  made.stops = asked.value("stop_token_ids", std::set<int32_t>());
  if (!asked.value("ignore_eos", false)) made.stops.insert(eos.begin(), eos.end());
  made.most = asked.value("max_tokens", int64_t{16});
  Sampling& sampling = made.sampling;
  sampling.temperature = asked.value("temperature", 1.0), sampling.top_p = asked.value("top_p", 1.0);
  sampling.min_p = asked.value("min_p", 0.0), sampling.top_k = asked.value("top_k", int64_t{0});
  sampling.seed = asked.contains("seed") ? asked.at("seed").get<uint64_t>() : std::random_device()();
  return made;
}

Json event_of(const Generation& generation, const Draw& draw) {
  const bool stop = generation.stops.contains(draw.token);
  const Json logprob = {{"token", "token_id:" + std::to_string(draw.token)}, {"logprob", draw.logprob}};
  const Json choice = {{"index", 0},
                       {"token_ids", {draw.token}},
                       {"logprobs", {{"content", {logprob}}}},
                       {"finish_reason", stop                   ? Json("stop")
                                         : generation.is_over() ? Json("length")
                                                                : Json()}};
  return {{"request_id", generation.name}, {"choices", {choice}}};
}

}  // namespace

Server::Server(const std::string& model_dir, std::string api_key)
    : api_key_(std::move(api_key)), model_(std::make_shared<Model>(model_dir)) {}

void Server::handle(const Connection& to, const Request& request) {
  try {
    answer(to, request);
  } catch (const Gone&) {
    throw;
  } catch (const std::exception& error) {
    to.reply(400, Json{{"error", {{"message", error.what()}, {"code", 400}}}}.dump());
  }
}

void Server::answer(const Connection& to, const Request& request) {
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
    load(Json::parse(request.body).at("kwargs").at("weights_path").get<std::string>());
    return to.reply(200, R"({"results":[null]})");
  }
  to.reply(404, R"({"error":{"message":"Not Found","code":404}})");
}

void Server::load(const std::string& dir) {
  auto loaded = std::make_shared<Model>(dir);
  const std::lock_guard lock(mutex_);
  model_ = std::move(loaded);
}

std::shared_ptr<const Model> Server::model() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

void Server::generate(const Connection& to, const Request& request) {
  if (request.key != api_key_) return to.reply(401, R"({"error":{"message":"Unauthorized","code":401}})");
  Generation generation = read_generation(Json::parse(request.body), model()->eos());
  to.begin_events();
  while (!generation.is_over()) {
    do to.check_alive();
    while (waits_for_resume());
    before_token(to, generation);
    const Draw draw = model()->next(generation.tokens, generation.sampling, generation.drawn);
    generation.tokens.push_back(draw.token);
    ++generation.drawn;
    before_sending(generation);
    to.event(event_of(generation, draw).dump());
  }
  to.end_events();
}

bool Server::waits_for_resume() const {
  if (paused_) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return paused_;
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == std::string("--model")) options.model_dir = argv[i + 1];
    if (argv[i] == std::string("--port")) options.port = std::atoi(argv[i + 1]);
  }
  const char* key = std::getenv("VLLM_API_KEY");
  options.api_key = key ? key : "";
  return options;
}

}  // namespace hexad::vllm::stand_in
