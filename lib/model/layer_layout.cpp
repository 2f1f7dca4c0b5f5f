#include "lib/model/layer_layout.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace hexad::model {
namespace {

struct LayerName {
  LayerType type;
  char letter;
  const char* name;
};
constexpr std::array<LayerName, 4> kLayers = {{{LayerType::embedding, 'E', "embedding"},
                                               {LayerType::decoder, 't', "decoder"},
                                               {LayerType::mtp, 'm', "mtp"},
                                               {LayerType::loss, 'L', "loss"}}};

// The text without repetitions.
class LayoutText {
 public:
  explicit LayoutText(const std::string& text) : text_(text) {
    for (const char c : text) {
      if (c != ',' && c != ' ') rest_ += c;
    }
  }

  std::string unrolled() {
    std::string result;
    while (at_ < rest_.size()) {
      const bool grouped = rest_[at_] == '(';
      const std::string item = grouped ? group() : std::string(1, rest_[at_++]);
      const std::optional<int64_t> count = repeat();
      if (grouped && !count) refuse(fmt::format("a group needs a count: ({})*2", item));
      if (item == ")") refuse("a ')' without '('");
      append(result, item, count.value_or(1));
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(std::string problem) const { throw LayoutError(text_, std::move(problem)); }

  // The inside of (...), whose layers may repeat.
  std::string group() {
    std::string result;
    const size_t begin = at_ + 1;
    for (++at_; at_ < rest_.size() && rest_[at_] != ')';) {
      if (rest_[at_] == '(') refuse("a group holds another group; write one of them out");
      const char layer = rest_[at_++];
      append(result, std::string(1, layer), repeat().value_or(1));
    }
    if (at_ == rest_.size()) refuse("a '(' without ')'");
    if (at_ == begin) refuse("'()' groups nothing");
    ++at_;
    return result;
  }

  // "*n" at this place.
  std::optional<int64_t> repeat() {
    if (at_ == rest_.size() || rest_[at_] != '*') return {};
    int64_t count = 0;
    const size_t begin = ++at_;
    for (; at_ < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[at_])); ++at_) {
      count = std::min(count * 10 + (rest_[at_] - '0'), kMostLayers + 1);
    }
    if (at_ == begin) refuse("a '*' without a number behind it");
    return count;
  }

  void append(std::string& result, const std::string& item, int64_t count) {
    if (static_cast<int64_t>(result.size()) + static_cast<int64_t>(item.size()) * count > kMostLayers) {
      refuse(fmt::format("too many layers: it has more than {} layers and stages", kMostLayers));
    }
    for (int64_t i = 0; i < count; ++i) result += item;
  }

  const std::string& text_;
  std::string rest_;
  size_t at_ = 0;
};

}  // namespace

LayoutError::LayoutError(const std::string& layout, std::string problem)
    : Error(fmt::format("pipeline layout '{}': {}", layout, problem)), problem_(std::move(problem)) {}

const char* layer_type_name(LayerType type) { return kLayers[static_cast<size_t>(type)].name; }

char layer_letter(LayerType type) { return kLayers[static_cast<size_t>(type)].letter; }

std::optional<LayerType> layer_type(const std::string& text) {
  std::string name;
  for (const char c : text) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  name.erase(name.begin(), std::find_if_not(name.begin(), name.end(), blank));
  name.erase(std::find_if_not(name.rbegin(), name.rend(), blank).base(), name.end());
  for (const LayerName& layer : kLayers) {
    if (name == layer.name) return layer.type;
  }
  return std::nullopt;
}

std::vector<StageLayers> parse_layer_layout(const std::string& text) {
  std::vector<StageLayers> stages(1);
  for (const char c : LayoutText(text).unrolled()) {
    if (c == '|') {
      stages.emplace_back();
      continue;
    }
    const auto found =
        std::find_if(kLayers.begin(), kLayers.end(), [&](const LayerName& layer) { return layer.letter == c; });
    if (found == kLayers.end()) {
      throw LayoutError(text,
                        fmt::format("'{}' is no layer; there are E (embedding), t (decoder layer), m (multi-token "
                                    "prediction) and L (loss)",
                                    c));
    }
    stages.back().push_back(found->type);
  }
  return stages;
}

std::vector<StageLayers> parse_layer_layout(const std::vector<std::vector<std::string>>& names) {
  std::vector<StageLayers> stages;
  for (const std::vector<std::string>& stage : names) {
    StageLayers& layers = stages.emplace_back();
    for (const std::string& text : stage) {
      const std::optional<LayerType> type = layer_type(text);
      if (!type) fail("pipeline layout: '{}' is no layer type; known: embedding, decoder, mtp, loss", text);
      layers.push_back(*type);
    }
  }
  return stages;
}

}  // namespace hexad::model
