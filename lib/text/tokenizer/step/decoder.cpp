#include "lib/text/tokenizer/step/decoder.hpp"

#include <charconv>
#include <optional>

#include "lib/text/tokenizer/step/byte_level.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

constexpr std::string_view kSupported = "ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip, Sequence";

std::string joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    std::string bytes, buffer;
    for (const std::string& token : tokens) bytes += byte_level_text(token);
    tokens.assign(1, std::string(valid_utf8(bytes, buffer)));
  }
  bool is_byte_level() const override { return true; }
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const Component& component) : mark_(component.text("replacement")) {
    if (mark_.empty()) component.refuse("\"replacement\" wants one character");
    const bool prefix = component.boolean_or("add_prefix_space", true);
    prepends_ = prefix && component.text_or("prepend_scheme", "always") != "never";
  }

  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string text;
      size_t from = 0;
      for (size_t at; (at = tokens[i].find(mark_, from)) != std::string::npos; from = at + mark_.size()) {
        text.append(tokens[i], from, at - from);
        if (i > 0 || !prepends_) text += ' ';
      }
      tokens[i] = text.append(tokens[i], from);
    }
  }

 private:
  std::string mark_;
  bool prepends_;
};

class ReplaceDecoder final : public Decoder {
 public:
  explicit ReplaceDecoder(const Component& component)
      : pattern_(component), content_(component.text("content")), where_(component.where()) {}

  void apply(std::vector<std::string>& tokens, size_t most) const override {
    std::vector<Regex::Match> matches;
    size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    for (std::string& token : tokens) {
      if (token.empty()) continue;
      pattern_.find_all(token, matches);
      if (matches.empty()) continue;
      bytes += matches.size() * content_.size();
      for (const Regex::Match& match : matches) bytes -= match.end - match.begin;
      if (bytes > most)
        fail(ErrorKind::data, "{}: makes {} bytes of tokens that may become at most {}", where_, bytes, most);
      std::string result;
      size_t from = 0;
      for (const Regex::Match& match : matches) {
        result.append(token, from, match.begin - from).append(content_);
        from = match.end;
      }
      token = result.append(token, from);
    }
  }

 private:
  TextPattern pattern_;
  std::string content_, where_;
};

// Runs of tokens "<0xE2>" become the character that they spell, or one U+FFFD each.
class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    std::vector<std::string> result;
    std::string bytes, buffer;
    const auto flush = [&] {
      if (bytes.empty()) return;
      const bool valid = valid_utf8(bytes, buffer).data() == bytes.data();
      if (valid)
        result.push_back(bytes);
      else
        result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += static_cast<char>(*byte);
      } else {
        flush();
        result.push_back(std::move(token));
      }
    }
    flush();
    tokens = std::move(result);
  }

 private:
  static std::optional<int> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
    std::string_view digits = token.substr(3, 2);
    if (digits[0] == '+') digits.remove_prefix(1);  // Rust's from_str_radix takes a sign
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || digits[0] == '-') return std::nullopt;
    return value;
  }
};

class FuseDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override { tokens.assign(1, joined(tokens)); }
};

// Up to `start` characters off the front of every token, and `stop` off its end, while they are `content`.
class StripDecoder final : public Decoder {
 public:
  explicit StripDecoder(const Component& component)
      : content_(component.text("content")),
        start_(static_cast<size_t>(component.integer("start", 0, 1 << 20))),
        stop_(static_cast<size_t>(component.integer("stop", 0, 1 << 20))) {
    if (content_.empty() || char_size(content_[0]) != content_.size()) {
      component.refuse("\"content\" wants one character, got \"{}\"", content_);
    }
  }

  void apply(std::vector<std::string>& tokens, size_t /*most*/) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (size_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      if (rest.size() != token.size()) token = std::string(rest);
    }
  }

 private:
  std::string content_;
  size_t start_, stop_;
};

class DecoderSequence final : public Decoder {
 public:
  explicit DecoderSequence(const Component& component) {
    for (const Component& part : component.children("decoders")) parts_.push_back(make_decoder(part));
  }

  void apply(std::vector<std::string>& tokens, size_t most) const override {
    for (const auto& part : parts_) part->apply(tokens, most);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::string byte_level_text(const std::string& token) { return bytes_of_token(token).value_or(token); }

std::unique_ptr<Decoder> make_decoder(const Component& component) {
  const std::string type = component.type();
  if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (type == "Metaspace") return std::make_unique<MetaspaceDecoder>(component);
  if (type == "Replace") return std::make_unique<ReplaceDecoder>(component);
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<FuseDecoder>();
  if (type == "Strip") return std::make_unique<StripDecoder>(component);
  if (type == "Sequence") return std::make_unique<DecoderSequence>(component);
  component.refuse_type(kSupported);
}

}  // namespace hexad::text
