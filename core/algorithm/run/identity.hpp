// What a run is a run of: a checkpoint goes on with the same model and the same data only.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/contents.hpp"

namespace hexad::algorithm {

// {"model": shape of its config.json and "weights", "data": names, sizes and contents of training sets}. Weights of
// gigabytes are told by what their files' first and last bytes hold, which begin with the names and shapes of tensors.
nlohmann::ordered_json identity_of(const config::RunConfig& run, const std::string& model_dir,
                                   const data::Contents& data);

// `identity`, to be compared with that of a checkpoint. Earlier versions looked at all rows of large data: what they
// have saved of them is not compared.
nlohmann::ordered_json comparable(nlohmann::ordered_json identity, const nlohmann::ordered_json& saved);

}  // namespace hexad::algorithm
