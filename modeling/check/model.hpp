// What the check libraries (hexad/check.h) of those that load a model say of its config.json: the sentence of the
// worker, by the function that the worker reads it with. Needs no LibTorch.
#pragma once
#include <hexad/check.h>

#include <optional>

#include "lib/model/error.hpp"
#include "lib/model/family/model_config.hpp"

namespace hexad::modeling {

// The model of the run by `input`, which the library was called with. Nothing where there is no config.json here, and
// where it was refused: that is a finding then.
inline std::optional<model::ModelConfig> checked_model(const hexad_check_host& host, const nlohmann::json& input) {
  const nlohmann::json& names = input.at("model");
  if (!names.is_object()) return {};
  const nlohmann::json& source = names.at("source");
  try {
    return model::parse_model_config(source.at("config"), source.at("file").get<std::string>());
  } catch (const model::Error& error) {
    host.finding(host.ctx, HEXAD_CHECK_ERROR, "run.policy.model_name", error.what());
    return {};
  }
}

}  // namespace hexad::modeling
