#include "plugins/openai_bridge/stand_in/server.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace hexad::openai::stand_in {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& message) {
  return Json{
      {"error", {{"message", message}, {"type", "invalid_request_error"}, {"param", nullptr}, {"code", nullptr}}}}
      .dump();
}

Sampling sampling_of(const Json& body) {
  Sampling sampling;
  sampling.temperature = body.value("temperature", 1.0), sampling.top_p = body.value("top_p", 1.0);
  sampling.min_p = body.value("min_p", 0.0), sampling.top_k = body.value("top_k", int64_t{0});
  sampling.seed = body.value("seed", uint64_t{0});
  return sampling;
}

}  // namespace

void Server::handle(const Connection& to, const Request& request) const {
  if (!api_key_.empty() && request.key != api_key_) return to.reply(401, error_of("Incorrect API key provided"));
  if (request.path == "/v1/models") {
    const Json model = {{"id", name_}, {"object", "model"}, {"owned_by", "stand-in"}};
    return to.reply(200, Json{{"object", "list"}, {"data", Json::array({model})}}.dump());
  }
  if (request.path != "/v1/completions") return to.reply(404, error_of("Not Found"));
  try {
    complete(to, request.body);
  } catch (const Gone&) {
    throw;
  } catch (const std::exception& error) {
    to.reply(400, error_of(error.what()));
  }
}

void Server::complete(const Connection& to, const std::string& asked) const {
  const Json body = Json::parse(asked);
  if (body.at("model") != name_) return to.reply(404, error_of("The model does not exist"));
  auto tokens = body.at("prompt").get<std::vector<int32_t>>();
  const size_t prompt = tokens.size();
  auto stops = body.value("stop_token_ids", std::set<int32_t>());
  if (!body.value("ignore_eos", false)) stops.insert(model_.eos().begin(), model_.eos().end());
  const auto most = body.at("max_tokens").get<int64_t>();
  const Sampling sampling = sampling_of(body);
  Json logprobs = Json::array(), names = Json::array();
  std::string finish = "length";
  for (int64_t made = 0; made < most && finish == "length"; ++made) {
    to.check_alive();
    const Draw draw = model_.next(tokens, sampling, made);
    tokens.push_back(draw.token);
    logprobs.push_back(draw.logprob), names.push_back("token_id:" + std::to_string(draw.token));
    if (stops.contains(draw.token)) finish = "stop";
  }
  const std::vector<int32_t> made(tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end());
  Json choice = {{"index", 0}, {"text", ""}, {"token_ids", made}, {"finish_reason", finish}, {"logprobs", nullptr}};
  if (body.contains("logprobs")) choice["logprobs"] = {{"tokens", names}, {"token_logprobs", logprobs}};
  to.reply(200, Json{{"object", "text_completion"},
                     {"model", name_},
                     {"choices", Json::array({choice})},
                     {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", made.size()}}}}
                    .dump());
}

}  // namespace hexad::openai::stand_in
