// Where the routers of a model with experts sent each token: as servers report it, and as the column routed_experts of
// a completion (abi.h) has it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hexad::bridge {

struct RouteShape {
  std::vector<int64_t> layers;  // those with experts, ascending
  int64_t num_layers = 0;       // of the whole model: servers report dense ones too
  int64_t num_experts = 0, topk = 0;

  int64_t reported() const { return num_layers * topk; }  // numbers that a server reports of a token
  int64_t kept() const { return static_cast<int64_t>(layers.size()) * topk; }
};

// Of a Hugging Face directory. Throws sdk::Error where its config.json is of no model with experts that Hexad knows.
RouteShape read_route_shape(const std::string& model_dir);

// int16 [tokens, layers with experts, topk] of a report int32 [tokens, all layers, topk]. Throws std::runtime_error
// with what is wrong with it: its size, or an expert that the model has not.
std::vector<int16_t> column_of(const RouteShape& shape, std::span<const int32_t> report, int64_t tokens);

}  // namespace hexad::bridge
