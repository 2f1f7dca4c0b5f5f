#include <algorithm>
#include <cmath>
#include <utility>

#include "plugins/server_bridge/protocol/json_cursor.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"

namespace hexad::vllm {
namespace {

using bridge::JsonCursor;

class Reader {
 public:
  Reader(GenerationApi api, std::string_view data) : api_(api), json_(data) {}

  std::optional<Chunk> read() {
    const bool good = json_.object([&](std::string_view key) {
      if (key == "choices") return once(choices_) && one_choice();
      return key != "error" && json_.skip();
    });
    if (!good || !choices_ || !json_.at_end() || chunk_.tokens.size() != chunk_.logprobs.size()) return std::nullopt;
    return std::move(chunk_);
  }

 private:
  // A key that comes twice is unusual.
  static bool once(bool& seen) { return !std::exchange(seen, true); }

  bool one_choice() {
    int64_t count = 0;
    return json_.array([&] {
      return ++count == 1 && json_.object([&](std::string_view key) { return value_of(key); });
    }) && count == 1;
  }

  bool value_of(std::string_view key) {
    if (key == "index") return once(index_) && zero();
    if (key == "token_ids") return once(ids_) && tokens();
    if (key == "logprobs") return once(logprobs_) && logprobs();
    if (key == "finish_reason") return once(finish_) && (json_.null() || finish());
    return json_.skip();
  }

  bool zero() {
    int64_t index = -1;
    return json_.integer(index) && index == 0;
  }

  bool tokens() {
    return json_.array([&] {
      int64_t id = -1;
      if (!json_.integer(id) || id < 0 || id > INT32_MAX) return false;
      chunk_.tokens.push_back(static_cast<int32_t>(id));
      return true;
    });
  }

  bool logprobs() {
    const bool by_tokens = api_ == GenerationApi::tokens;
    bool seen = false;
    return json_.object([&](std::string_view key) {
      if (key != (by_tokens ? "content" : "token_logprobs")) return json_.skip();
      return once(seen) && json_.array([&] { return by_tokens ? entry() : logprob(); });
    });
  }

  bool entry() {
    bool seen = false;
    const bool good =
        json_.object([&](std::string_view key) { return key == "logprob" ? once(seen) && logprob() : json_.skip(); });
    return good && seen;
  }

  bool logprob() {
    double value = 0;
    if (!json_.real(value)) return false;
    const auto logprob = static_cast<float>(value);
    if (!std::isfinite(logprob) || logprob > 0) return false;
    chunk_.logprobs.push_back(logprob);
    return true;
  }

  bool finish() {
    std::string_view reason;
    if (!json_.text(reason)) return false;
    chunk_.finish = reason;
    return true;
  }

  GenerationApi api_;
  JsonCursor json_;
  Chunk chunk_;
  bool choices_ = false, index_ = false, ids_ = false, logprobs_ = false, finish_ = false;
};

}  // namespace

std::optional<Chunk> read_usual_event(GenerationApi api, std::string_view data) { return Reader(api, data).read(); }

}  // namespace hexad::vllm
