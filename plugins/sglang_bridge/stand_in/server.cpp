#include "plugins/sglang_bridge/stand_in/server.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace hexad::sglang::stand_in {
namespace {

using Json = nlohmann::ordered_json;

Generation read_generation(const Json& body, const std::set<int32_t>& eos) {
  const Json asked = body.value("sampling_params", Json::object());
  Generation made;
  made.name = body.value("rid", "");
  made.tokens = body.at("input_ids").get<std::vector<int32_t>>();
  made.stops = asked.value("stop_token_ids", std::set<int32_t>());
  if (!asked.value("ignore_eos", false)) made.stops.insert(eos.begin(), eos.end());
  made.most = asked.value("max_new_tokens", int64_t{128});
  made.interval = asked.value("stream_interval", int64_t{1});
  Sampling& sampling = made.sampling;
  sampling.temperature = asked.value("temperature", 1.0), sampling.top_p = asked.value("top_p", 1.0);
  sampling.min_p = asked.value("min_p", 0.0), sampling.top_k = asked.value("top_k", int64_t{-1});
  sampling.seed = asked.contains("sampling_seed") ? asked.at("sampling_seed").get<uint64_t>() : std::random_device()();
  return made;
}

Json spans_of(const std::vector<std::string>& versions) {
  Json spans = Json::array();
  for (size_t i = 0; i < versions.size(); ++i) {
    if (i == 0 || versions[i] != versions[i - 1]) spans.push_back({{"version", versions[i]}, {"start", i}});
    spans.back()["end"] = i + 1;
  }
  return spans;
}

// All so far, as SGLang's events have it.
Json event_of(const Generation& generation, const Json& finish) {
  const auto begin = generation.tokens.end() - static_cast<std::ptrdiff_t>(generation.drawn);
  const std::vector<int32_t> ids(begin, generation.tokens.end());
  Json logprobs = Json::array();
  for (size_t i = 0; i < ids.size(); ++i) logprobs.push_back({generation.logprobs[i], ids[i], nullptr});
  Json meta = {{"id", generation.name},
               {"finish_reason", finish},
               {"weight_version", generation.versions.empty() ? "" : generation.versions.back()},
               {"output_token_logprobs", logprobs},
               {"completion_tokens", ids.size()}};
  if (!finish.is_null()) meta["weight_versions"] = spans_of(generation.versions);
  return {{"text", ""}, {"output_ids", ids}, {"meta_info", meta}};
}

Json finish_of(const Generation& generation) {
  if (!generation.is_over()) return nullptr;
  if (generation.drawn > 0 && generation.stops.contains(generation.tokens.back()))
    return {{"type", "stop"}, {"matched", generation.tokens.back()}};
  return {{"type", "length"}, {"length", generation.drawn}};
}

}  // namespace

Server::Server(const std::string& model_dir, std::string api_key)
    : api_key_(std::move(api_key)), model_dir_(model_dir), model_(std::make_shared<Model>(model_dir)) {
  std::ifstream config(model_dir + "/config.json");
  model_type_ = Json::parse(config).value("model_type", "");
}

void Server::handle(const Connection& to, const Request& request) {
  try {
    answer(to, request);
  } catch (const Gone&) {
    throw;
  } catch (const std::exception& error) {
    to.reply(400, Json{{"error", {{"message", error.what()}}}}.dump());
  }
}

void Server::answer(const Connection& to, const Request& request) {
  if (request.path == "/health") return to.reply(paused_ ? 503 : 200, "");
  if (request.key != api_key_) return to.reply(401, R"({"error":"Unauthorized"})");
  if (request.path == "/generate") return generate(to, request);
  if (request.path == "/server_info") {
    return to.reply(200, Json{{"version", "0.5.23"}, {"enable_memory_saver", false}}.dump());
  }
  if (request.path == "/pause_generation" || request.path == "/continue_generation") {
    paused_ = request.path == "/pause_generation";
    if (paused_ && Json::parse(request.body).at("mode") == "abort") ++aborts_of_all_;
    return to.reply(200, R"({"message":"Generation paused or continued successfully.","status":"ok"})");
  }
  if (request.path == "/flush_cache") return to.reply(200, "Cache flushed.\n");
  if (update_by_group(to, request)) return;
  update(to, request);
}

void Server::update(const Connection& to, const Request& request) {
  const Json body = request.body.empty() ? Json::object() : Json::parse(request.body);
  std::unique_lock lock(mutex_);
  if (request.path == "/model_info") {
    return to.reply(200, Json{{"model_path", model_dir_},
                              {"is_generation", true},
                              {"weight_version", version_},
                              {"model_type", model_type_}}
                             .dump());
  }
  if (request.path == "/abort_request") {
    body.value("abort_all", false) ? void(++aborts_of_all_) : void(aborted_.insert(body.at("rid").get<std::string>()));
    return to.reply(200, "");
  }
  if (request.path == "/update_weight_version") {
    version_ = body.at("new_version").get<std::string>();
    return to.reply(200, R"({"success":true})");
  }
  if (request.path != "/update_weights_from_disk") return to.reply(404, R"({"detail":"Not Found"})");
  model_ = std::make_shared<Model>(body.at("model_path").get<std::string>());
  version_ = body.value("weight_version", version_);
  to.reply(200, R"({"success":true,"message":"Succeeded to update model weights.","num_paused_requests":0})");
}

// False: the call is another.
bool Server::update_by_group(const Connection& to, const Request& request) {
  const auto reply = groups_.answer(request.path, request.body);
  if (!reply) return false;
  if (reply->version) {
    const std::lock_guard lock(mutex_);
    model_ = std::make_shared<Model>(model_->with_weights(groups_.hash()));
    version_ = *reply->version;
  }
  to.reply(reply->status, reply->body);
  return true;
}

void Server::draw(Generation& generation) {
  std::shared_ptr<const Model> model;
  {
    const std::lock_guard lock(mutex_);
    model = model_;
    generation.versions.push_back(version_);
  }
  const Draw draw = model->next(generation.tokens, generation.sampling, generation.drawn);
  generation.tokens.push_back(draw.token);
  generation.logprobs.push_back(draw.logprob);
  ++generation.drawn;
}

bool Server::may_go_on(const Connection& to, const Generation& generation) {
  for (;;) {
    to.check_alive();
    {
      const std::lock_guard lock(mutex_);
      if (aborted_.contains(generation.name) || aborts_of_all_ != generation.aborts_before) return false;
    }
    if (!paused_) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Server::generate(const Connection& to, const Request& request) {
  const Json body = Json::parse(request.body);
  if (!body.contains("input_ids"))
    return to.reply(400, R"({"error":{"message":"Either text, input_ids or input_embeds should be provided."}})");
  std::set<int32_t> eos;
  {
    const std::lock_guard lock(mutex_);
    eos = model_->eos();
  }
  Generation generation = read_generation(body, eos);
  generation.aborts_before = aborts_of_all_;
  to.begin_events();
  Json finish = nullptr;
  while (finish.is_null()) {
    before_token(to, generation);
    if (may_go_on(to, generation)) {  // asked last: a pause in the meantime may have brought other weights
      draw(generation);
      finish = finish_of(generation);
    } else {
      finish = {{"type", "abort"}, {"message", "Aborted"}};
    }
    if (finish.is_null() && generation.drawn % generation.interval != 0) continue;
    before_sending(generation);
    to.event(event_of(generation, finish).dump());
  }
  to.end_events();
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == std::string("--model-path")) options.model_dir = argv[i + 1];
    if (argv[i] == std::string("--port")) options.port = std::atoi(argv[i + 1]);
    if (argv[i] != std::string("--config")) continue;
    std::ifstream file(argv[i + 1]);
    std::string line;
    while (std::getline(file, line)) {
      if (line.starts_with("api-key: \"")) options.api_key = line.substr(10, line.size() - 11);
    }
  }
  return options;
}

}  // namespace hexad::sglang::stand_in
