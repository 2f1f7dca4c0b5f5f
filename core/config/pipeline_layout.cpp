#include "core/config/pipeline_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hexad::config {
namespace {

constexpr size_t kMostLayers = 100'000;
const std::string kLayers = "EtmL";

// Unfolds repetitions. Groups do not nest deeper than the parser's stack has room for.
class LayoutParser {
 public:
  explicit LayoutParser(const std::string& text) {
    for (const char c : text) {
      if (c != ',' && c != ' ') text_ += c;
    }
  }

  PipelineLayout run() {
    std::string flat = sequence(0);
    if (problem_.empty() && at_ < text_.size()) problem_ = "a ')' without '('";
    if (!problem_.empty()) return {{}, problem_};
    PipelineLayout layout{{""}, ""};
    for (const char c : flat) {
      if (c == '|') {
        layout.stages.emplace_back();
      } else {
        layout.stages.back() += c;
      }
    }
    return layout;
  }

 private:
  std::string sequence(int depth) {
    std::string result;
    while (problem_.empty() && at_ < text_.size() && text_[at_] != ')') {
      std::string item = one(depth);
      const size_t times = repetitions();
      if (problem_.empty() && item.size() * times + result.size() > kMostLayers) problem_ = "too many layers";
      for (size_t i = 0; problem_.empty() && i < times; ++i) result += item;
    }
    return result;
  }

  std::string one(int depth) {
    const char c = text_[at_++];
    if (c == '|' || kLayers.find(c) != std::string::npos) return std::string(1, c);
    if (c != '(') {
      problem_ = fmt::format(
          "'{}' is no layer; there are E (embedding), t (decoder layer), m (multi-token prediction) "
          "and L (loss)",
          c);
      return "";
    }
    if (depth == kDeepestNesting) {
      problem_ = "groups nested too deep";
      return "";
    }
    std::string group = sequence(depth + 1);
    if (problem_.empty() && at_ == text_.size()) problem_ = "a '(' without ')'";
    ++at_;
    return group;
  }

  size_t repetitions() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 6) ++at_;
    if (at_ > begin) return std::stoul(text_.substr(begin, at_ - begin));
    if (problem_.empty()) problem_ = "a '*' without a number behind it";
    return 1;
  }

  std::string text_;
  size_t at_ = 0;
  std::string problem_;
};

PipelineLayout from_list(const Node& list) {
  static const std::pair<const char*, char> names[] = {
      {"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}};
  PipelineLayout layout;
  for (const Node& stage : list.items()) {
    layout.stages.emplace_back();
    if (!stage.is_list()) return {{}, fmt::format("{} is no stage; wanted a list of lists", stage.describe())};
    for (const Node& layer : stage.items()) {
      const auto found = std::ranges::find_if(
          names, [&](const auto& name) { return layer.is_string() && layer.as_string() == name.first; });
      if (found == std::end(names)) {
        return {{}, fmt::format("{} is no layer; there are embedding, decoder, mtp and loss", layer.describe())};
      }
      layout.stages.back() += found->second;
    }
  }
  return layout;
}

}  // namespace

size_t PipelineLayout::count(char layer) const {
  size_t found = 0;
  for (const std::string& stage : stages) found += std::ranges::count(stage, layer);
  return found;
}

PipelineLayout pipeline_layout(const Node& value) {
  return value.is_list() ? from_list(value) : LayoutParser(value.as_string()).run();
}

}  // namespace hexad::config
