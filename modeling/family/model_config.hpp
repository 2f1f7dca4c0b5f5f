// The model of a folder: lib/model/family reads its config.json, for whoever has no LibTorch too.
#pragma once
#include <filesystem>

#include "lib/model/family/model_config.hpp"
#include "modeling/error.hpp"
#include "modeling/family/mla.hpp"
#include "modeling/moe/topk_routing.hpp"
#include "modeling/op/rope.hpp"

namespace hexad::modeling {

using model::MlaConfig;
using model::ModelConfig;
using model::MoeConfig;
using model::MoeFamily;
using model::parse_model_config;

// Reads `dir`/config.json, and the eos ids of `dir`/generation_config.json when that exists.
ModelConfig load_model_config(const std::filesystem::path& dir);

}  // namespace hexad::modeling
