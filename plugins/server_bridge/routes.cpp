#include "plugins/server_bridge/routes.hpp"

#include <fmt/format.h>
#include <hexad/services.hpp>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lib/base/file/input_file.hpp"
#include "lib/model/family/model_config.hpp"

namespace hexad::bridge {
namespace {

model::ModelConfig read_config(const std::string& path) {
  InputFile file(path, [](const std::string& name, const char* what, int reason) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name: %s %s: %s", name.c_str(), what, std::strerror(reason));
  });
  try {
    return model::parse_model_config(nlohmann::json::parse(file), path);
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "router replay: %s", error.what());
  }
}

}  // namespace

RouteShape read_route_shape(const std::string& model_dir) {
  const std::string path = model_dir + "/config.json";
  const model::ModelConfig config = read_config(path);
  if (!config.moe) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "router replay: %s is of a model without experts; leave policy.router_replay off",
              path.c_str());
  }
  RouteShape shape{.layers = {},
                   .num_layers = config.num_layers,
                   .num_experts = config.moe->num_experts,
                   .topk = config.moe->routing.topk};
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    if (config.has_experts(layer)) shape.layers.push_back(layer);
  return shape;
}

std::vector<int16_t> column_of(const RouteShape& shape, std::span<const int32_t> report, int64_t tokens) {
  if (static_cast<int64_t>(report.size()) != tokens * shape.reported()) {
    throw std::runtime_error(
        fmt::format("routed_experts has {} numbers, wanted {}: {} tokens, {} layers, {} experts a token", report.size(),
                    tokens * shape.reported(), tokens, shape.num_layers, shape.topk));
  }
  std::vector<int16_t> column;
  column.reserve(static_cast<size_t>(tokens * shape.kept()));
  for (int64_t token = 0; token < tokens; ++token) {
    for (const int64_t layer : shape.layers) {
      const auto first = static_cast<size_t>(token * shape.reported() + layer * shape.topk);
      for (const int32_t expert : report.subspan(first, static_cast<size_t>(shape.topk))) {
        if (expert < 0 || expert >= shape.num_experts) {
          throw std::runtime_error(fmt::format("routed_experts sends token {} to expert {} of layer {}, which has {}",
                                               token, expert, layer, shape.num_experts));
        }
        column.push_back(static_cast<int16_t>(expert));
      }
    }
  }
  return column;
}

}  // namespace hexad::bridge
