// pipeline_model_parallel_layout: what each stage holds.
#include <fmt/format.h>

#include <algorithm>

#include "lib/model/layer_layout.hpp"
#include "plugins/megatron/check/check.hpp"

namespace hexad::megatron_check {
namespace {

using nlohmann::json;

constexpr const char* kKey = "pipeline_model_parallel_layout";

// A text of letters for each stage: E embedding, t decoder, m multi-token prediction, L loss.
struct Layout {
  std::vector<std::string> stages;
  std::string problem;

  int64_t count(char layer) const {
    int64_t found = 0;
    for (const std::string& stage : stages) found += std::count(stage.begin(), stage.end(), layer);
    return found;
  }
};

Layout of_text(const std::string& text) {
  Layout layout;
  try {
    for (const model::StageLayers& stage : model::parse_layer_layout(text)) {
      std::string& letters = layout.stages.emplace_back();
      for (const model::LayerType layer : stage) letters += model::layer_letter(layer);
    }
    return layout;
  } catch (const model::LayoutError& error) {
    return {{}, error.problem()};
  }
}

// As a message shows a value: text 'abc', int 5.
std::string described(const json& value) {
  if (value.is_string()) return fmt::format("text '{}'", value.get<std::string>());
  if (value.is_number_integer()) return fmt::format("int {}", value.get<int64_t>());
  if (value.is_number()) return fmt::format("float {}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "bool true" : "bool false";
  return value.is_null() ? "null" : value.is_array() ? "a list" : "a mapping";
}

Layout of_list(const json& list) {
  Layout layout;
  for (const json& stage : list) {
    std::string& letters = layout.stages.emplace_back();
    if (!stage.is_array()) return {{}, fmt::format("{} is no stage; wanted a list of lists", described(stage))};
    for (const json& layer : stage) {
      const auto type = layer.is_string() ? model::layer_type(layer.get<std::string>()) : std::nullopt;
      if (!type)
        return {{}, fmt::format("{} is no layer; there are embedding, decoder, mtp and loss", described(layer))};
      letters += model::layer_letter(*type);
    }
  }
  return layout;
}

// "; nearest: 4 or 8": the multiples of `step` around a number that is none.
std::string nearest_multiples(int64_t value, int64_t step) {
  const int64_t below = value / step * step, above = below + step;
  return below > 0 ? fmt::format("; nearest: {} or {}", below, above) : fmt::format("; nearest: {}", above);
}

void check_content(const Check& check, const Layout& layout) {
  const std::string &first = layout.stages.front(), &last = layout.stages.back();
  const auto error = [&](const std::string& message) { check.error(kKey, message); };
  if (first.empty() || first.front() != 'E' || layout.count('E') != 1)
    error(
        fmt::format("the first layer of the first stage must be the one embedding (E), got {} of them and a first "
                    "stage '{}'",
                    layout.count('E'), first));
  if (last.empty() || last.back() != 'L' || layout.count('L') != 1)
    error(fmt::format("the last layer of the last stage must be the one loss (L), got {} of them and a last stage '{}'",
                      layout.count('L'), last));
  if (layout.count('m') > 0)
    error(
        fmt::format("holds {} layers of multi-token prediction (m), which are not trained in this version; nearest: "
                    "none",
                    layout.count('m')));
  const json layers = check.model.is_object() ? check.model.value("num_hidden_layers", json()) : json();
  if (layers.is_number_integer() && layout.count('t') != layers.get<int64_t>())
    error(fmt::format("holds {} decoder layers (t), wanted num_hidden_layers {}", layout.count('t'),
                      layers.get<int64_t>()));
}

}  // namespace

void check_layout(const Check& check) {
  const json value = check.keys.value(kKey, json());
  if (!value.is_string() && !value.is_array()) return;
  const Layout layout = value.is_array() ? of_list(value) : of_text(value.get<std::string>());
  if (!layout.problem.empty()) return check.error(kKey, layout.problem);
  const int64_t stages = static_cast<int64_t>(layout.stages.size()), pp = check.size("pipeline_model_parallel_size");
  check.name("layout_stages", stages);
  if (stages == 0) return check.error(kKey, "is empty");
  if (stages % pp != 0)
    check.error(kKey, fmt::format("has {} stages, wanted a multiple of pipeline_model_parallel_size {}{}", stages, pp,
                                  nearest_multiples(stages, pp)));
  check_content(check, layout);
}

}  // namespace hexad::megatron_check
