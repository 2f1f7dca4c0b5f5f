// A server that speaks OpenAI's /v1/completions in one of the ways that there are, and can be told to answer otherwise.
// Its model: tests/plugins/server_bridge/support/fake_model.hpp.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/plugins/server_bridge/support/fake_model.hpp"
#include "tests/support/fake_http.hpp"

namespace openai_test {

using namespace bridge_test;
using namespace fake_http;
using Json = nlohmann::ordered_json;

// How it is asked, and what it tells tokens by.
enum class Kind {
  vllm,      // token ids; token_ids, "token_id:N"
  names,     // token ids; "token_id:N" alone
  llama,     // token ids; logprobs.content with ids, else text
  tensorrt,  // token ids, and no keys that it does not know; token_ids
  mlx,       // text, else it closes the connection; logprobs.content with ids, else text
  hosted     // text, and OpenAI's keys alone; texts
};

class FakeOpenai {
 public:
  static constexpr const char* kSection = "openai_cfg";
  struct Options {
    Kind kind = Kind::vllm;
    std::string model = "m", api_key = {};
    int64_t max_model_len = 4096, n_vocab = 0;
    std::string letters = {};  // of ids from 4 on; "": it says no text
    int token_ms = 0;
  };
  // Sends another answer than `right`; false: that one.
  using Inject = std::function<bool(const Connection& to, const Json& asked, const Json& right)>;

  FakeOpenai() : FakeOpenai(Options{}) {}
  explicit FakeOpenai(Options options)
      : options_(std::move(options)),
        listener_(0, [this](const Connection& to, const HttpMessage& message) { handle(to, message); }) {}
  ~FakeOpenai() { stop(); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port()); }
  void stop() {
    stopping_ = true;
    listener_.stop();
  }
  // Of requests after the first, which is the probe's.
  void inject(Inject inject) {
    const std::lock_guard lock(mutex_);
    inject_ = std::move(inject);
  }
  // Of the probe too.
  void inject_first(Inject inject) {
    const std::lock_guard lock(mutex_);
    inject_first_ = std::move(inject);
  }
  // What /v1/models answers with.
  void models(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    models_status_ = status, models_ = std::move(body);
  }
  std::vector<Json> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Those after the last probe.
  std::vector<Json> samples() const {
    std::vector<Json> all = requests();
    std::erase_if(all, [](const Json& body) { return body.at("temperature") == 0 && body.at("max_tokens") == 4; });
    return all;
  }
  bool stopping() const { return stopping_; }

 private:
  static std::string error_of(const std::string& text) { return Json{{"error", {{"message", text}}}}.dump(); }

  void handle(const Connection& to, const HttpMessage& message) {
    if (!options_.api_key.empty() && message.key != options_.api_key)
      return to.reply(401, error_of("Incorrect API key provided"));
    if (message.path == "/v1/models") {
      const std::lock_guard lock(mutex_);
      if (models_status_ != 0) return to.reply(models_status_, models_);
      Json model = {{"id", options_.model}, {"owned_by", "fake"}, {"max_model_len", options_.max_model_len}};
      if (options_.n_vocab > 0) model["meta"] = {{"n_vocab", options_.n_vocab}};
      return to.reply(200, Json{{"data", Json::array({model})}}.dump());
    }
    if (message.path != "/v1/completions") return to.reply(404, error_of("Not Found"));
    complete(to, Json::parse(message.body));
  }

  // Why the request is none for this kind; "": it is.
  std::string refusal(const Json& body) const {
    const bool text = body.at("prompt").is_string();
    if (text && options_.kind != Kind::mlx && options_.kind != Kind::hosted && options_.kind != Kind::llama)
      return "prompt: wanted token ids";
    if (!text && options_.kind == Kind::hosted) return "prompt: wanted a text";
    std::set<std::string> known = {"model",       "prompt", "stream",   "n",   "max_tokens",
                                   "temperature", "top_p",  "logprobs", "seed"};
    if (options_.kind == Kind::tensorrt) {
      known.insert({"top_k", "min_p", "stop_token_ids", "ignore_eos", "repetition_penalty", "presence_penalty",
                    "frequency_penalty", "skip_special_tokens", "detokenize"});
    } else if (options_.kind != Kind::hosted) {
      return "";
    }
    for (const auto& [key, value] : body.items())
      if (!known.contains(key)) return "Unrecognized request argument supplied: " + key;
    return "";
  }

  std::string text_of(const std::vector<int32_t>& ids) const {
    std::string text;
    for (const int32_t id : ids)
      if (id >= 4 && static_cast<size_t>(id - 4) < options_.letters.size()) text += options_.letters[id - 4];
    return text;
  }
  std::vector<int32_t> prompt_of(const Json& prompt) const {
    if (prompt.is_array()) return prompt.get<std::vector<int32_t>>();
    std::vector<int32_t> ids;
    for (const char letter : prompt.get<std::string>())
      ids.push_back(static_cast<int32_t>(4 + options_.letters.find(letter)));
    return ids;
  }

  void complete(const Connection& to, const Json& body) {
    Inject inject;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(body);
      const bool first = body.at("temperature") == 0 && body.at("max_tokens") == 4;
      inject = inject_first_ ? inject_first_ : first ? Inject() : inject_;
    }
    if (options_.kind == Kind::mlx && body.at("prompt").is_array()) throw Gone{};
    if (const std::string why = refusal(body); !why.empty()) return to.reply(400, error_of(why));
    if (options_.token_ms > 0) to.pass_time(options_.token_ms * body.at("max_tokens").get<int>());
    const Json right = answer_to(body);
    if (inject && inject(to, body, right)) return;
    to.reply(200, right.dump());
  }

  Json answer_to(const Json& body) const {
    std::vector<int32_t> tokens = prompt_of(body.at("prompt")), ids;
    const size_t prompt = tokens.size();
    std::vector<float> logprobs;
    const auto stops = body.value("stop_token_ids", std::set<int32_t>());
    std::string finish = "length";
    while (static_cast<int64_t>(ids.size()) < body.at("max_tokens").get<int64_t>() && finish == "length") {
      const int letters = static_cast<int>(options_.letters.size());
      const int32_t next = next_token(tokens, 0);
      logprobs.push_back(next_logprob(tokens, 0));
      ids.push_back(letters > 0 ? 4 + next % letters : next);
      tokens.push_back(ids.back());
      if (stops.contains(ids.back())) finish = "stop";
    }
    Json choice = {{"index", 0}, {"text", text_of(ids)}, {"finish_reason", finish}, {"logprobs", nullptr}};
    const bool by_ids =
        options_.kind == Kind::tensorrt ? body.value("detokenize", true) == false : options_.kind == Kind::vllm;
    if (by_ids) choice["token_ids"] = ids;
    if (body.contains("logprobs")) choice["logprobs"] = logprobs_of(ids, logprobs);
    return {{"object", "text_completion"},
            {"choices", Json::array({choice})},
            {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", ids.size()}}}};
  }

  Json logprobs_of(const std::vector<int32_t>& ids, const std::vector<float>& logprobs) const {
    Json content = Json::array(), names = Json::array();
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string letter = text_of({ids[i]});
      content.push_back({{"id", ids[i]}, {"token", letter}, {"logprob", logprobs[i]}});
      const bool named = options_.kind == Kind::vllm || options_.kind == Kind::names;
      names.push_back(named ? "token_id:" + std::to_string(ids[i]) : letter);
    }
    if (options_.kind == Kind::llama || options_.kind == Kind::mlx) return {{"content", content}};
    return {{"tokens", names}, {"token_logprobs", logprobs}};
  }

  Options options_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;  // of what follows
  Inject inject_, inject_first_;
  int models_status_ = 0;
  std::string models_;
  std::vector<Json> requests_;
  HttpListener listener_;  // last: its threads use the rest
};

}  // namespace openai_test
