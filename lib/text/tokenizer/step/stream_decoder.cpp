#include "lib/text/tokenizer/step/stream_decoder.hpp"

#include "lib/base/error.hpp"

namespace hexad::text {
namespace {

// A text that ends so may be an incomplete character.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

bool StreamDecoder::step(int32_t id, std::optional<std::string>& chunk) {
  chunk.reset();
  if (prefix_.empty() && !ids_.empty()) {
    std::string context = tokenizer_->decode(ids_, skip_special_tokens_);
    if (!context.ends_with(kReplacement)) {
      prefix_ = std::move(context);
      prefix_count_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = tokenizer_->decode(ids_, skip_special_tokens_);
  if (text.size() <= prefix_.size() || text.ends_with(kReplacement)) return true;
  if (!text.starts_with(prefix_)) return false;
  chunk = text.substr(prefix_.size());
  // The ids since the last chunk are the context of the next one.
  const size_t fresh = ids_.size() - prefix_count_;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_count_));
  prefix_ = tokenizer_->decode(ids_, skip_special_tokens_);
  prefix_count_ = fresh;
  return true;
}

std::optional<std::string> StreamDecoder::push(int32_t id) {
  std::optional<std::string> chunk;
  if (!step(id, chunk)) {
    fail(ErrorKind::data, "token {} changes text that was decoded before it: the bytes before it make no character",
         id);
  }
  return chunk;
}

std::optional<std::string> StreamDecoder::push_or_restart(int32_t id) {
  std::optional<std::string> chunk;
  if (!step(id, chunk)) {
    reset();
    step(id, chunk);
  }
  return chunk;
}

void StreamDecoder::reset() {
  ids_.clear();
  prefix_.clear();
  prefix_count_ = 0;
}

}  // namespace hexad::text
