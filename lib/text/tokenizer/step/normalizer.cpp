#include "lib/text/tokenizer/step/normalizer.hpp"

#include <algorithm>

#include "lib/text/tokenizer/step/byte_level.hpp"
#include "lib/text/tokenizer/step/unicode_normalizer.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

constexpr std::string_view kNormalizers =
    "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, ByteLevel, Sequence";

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(UnicodeNormalizer::Form form) : form_(UnicodeNormalizer::get(form)) {}

  void apply(NormalizedText& text) const override {
    if (form_.leaves_alone(text.text)) return;
    std::string& out = text.fresh();
    // Where the first character's share ends is known when its own form is a prefix of the whole one's; else it
    // combined with what follows, and the result is aligned with it.
    size_t from_start = 0;
    if (text.from_start > 0) {
      form_.append(text.text.substr(0, text.from_start), out);
      from_start = out.size();
      const std::string head = std::move(out);
      out.clear();
      form_.append(text.text, out);
      if (!out.starts_with(head)) from_start = out.empty() ? 0 : char_size(out[0]);
    } else {
      form_.append(text.text, out);
    }
    text.text = out;
    text.from_start = from_start;
  }

 private:
  const UnicodeNormalizer& form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string& out = text.fresh();
    size_t from_start = 0;
    const char* begin = text.text.data();
    for (const char* at = begin; at < begin + text.text.size();) {
      const bool first = static_cast<size_t>(at - begin) < text.from_start;
      append_lowercase(next_char(at), out);
      if (first) from_start = out.size();
    }
    text.text = out;
    text.from_start = from_start;
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(NormalizedText& text) const override {
    const uint8_t* classes = char_classes();
    std::string_view& view = text.text;
    const size_t before = view.size();
    while (left_ && !view.empty()) {
      const char* at = view.data();
      if (!(classes[next_char(at)] & kSpace)) break;
      view.remove_prefix(static_cast<size_t>(at - view.data()));
    }
    const size_t removed = before - view.size();
    while (right_ && !view.empty()) {
      size_t last = view.size() - 1;
      while ((static_cast<uint8_t>(view[last]) & 0xC0) == 0x80) --last;
      const char* at = view.data() + last;
      if (!(classes[next_char(at)] & kSpace)) break;
      view = view.substr(0, last);
    }
    text.from_start = std::min(text.from_start - std::min(removed, text.from_start), view.size());
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Component& component) : prefix_(component.text("prepend")), where_(component.where()) {}

  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    text.require_room(prefix_.size() + text.text.size(), where_);
    std::string& out = text.fresh();
    out.append(prefix_).append(text.text);
    text.text = out;
    if (text.from_start > 0) text.from_start += prefix_.size();
  }

 private:
  std::string prefix_, where_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Component& component)
      : pattern_(component), content_(component.text("content")), where_(component.where()) {}

  void apply(NormalizedText& text) const override {
    thread_local std::vector<Regex::Match> matches;
    if (text.text.empty()) return;
    pattern_.find_all(text.text, matches);
    if (matches.empty()) return;
    text.require_room(size_with(matches, text.text.size()), where_);
    std::string& out = text.fresh();
    size_t from = 0, from_start = 0;
    const auto keep = [&](size_t to) {
      if (text.from_start > from) from_start = out.size() + std::min(text.from_start, to) - from;
      out.append(text.text.substr(from, to - from));
    };
    for (const Regex::Match& match : matches) {
      keep(match.begin);
      out += content_;
      if (match.end == 0 || match.end <= text.from_start) from_start = out.size();
      from = match.end;
    }
    keep(text.text.size());
    text.text = out;
    text.from_start = from_start;
  }

 private:
  size_t size_with(const std::vector<Regex::Match>& matches, size_t size) const {
    for (const Regex::Match& match : matches) size -= match.end - match.begin;
    return size + matches.size() * content_.size();
  }

  TextPattern pattern_;
  std::string content_, where_;
};

class ByteChars final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string& out = text.fresh();
    append_byte_chars(text.text.substr(0, text.from_start), out);
    const size_t from_start = out.size();
    append_byte_chars(text.text.substr(text.from_start), out);
    text.text = out;
    text.from_start = from_start;
  }
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const Component& component) : where_(component.where()) {
    for (const Component& part : component.children("normalizers")) parts_.push_back(make_normalizer(part));
  }

  void apply(NormalizedText& text) const override {
    for (const auto& part : parts_) {
      part->apply(text);
      text.require_room(text.text.size(), where_);
    }
  }

 private:
  std::string where_;
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

void NormalizedText::require_room(size_t bytes, const std::string& where) const {
  if (bytes <= room) return;
  fail(ErrorKind::data,
       "{}: makes {} bytes of a text, of which {} may become at most {}: no tokenizer that people use makes so much of "
       "one. Take the file from where its model comes from",
       where, bytes, text.size(), room);
}

std::unique_ptr<Normalizer> make_normalizer(const Component& component) {
  const std::string type = component.type();
  using Form = UnicodeNormalizer::Form;
  if (type == "NFC") return std::make_unique<UnicodeForm>(Form::nfc);
  if (type == "NFD") return std::make_unique<UnicodeForm>(Form::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(Form::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(Form::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "Strip") {
    return std::make_unique<Strip>(component.boolean_or("strip_left", true), component.boolean_or("strip_right", true));
  }
  if (type == "Prepend") return std::make_unique<Prepend>(component);
  if (type == "Replace") return std::make_unique<Replace>(component);
  if (type == "ByteLevel") return std::make_unique<ByteChars>();
  if (type == "Sequence") return std::make_unique<NormalizerSequence>(component);
  component.refuse_type(kNormalizers);
}

}  // namespace hexad::text
