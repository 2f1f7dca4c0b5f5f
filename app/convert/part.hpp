// A folder of model files that a conversion reads: a Hugging Face folder, or a part of a checkpoint, whose own they
// then have to be.
#pragma once
#include <filesystem>
#include <string>

#include "lib/tensorfile/safetensors.hpp"

namespace hexad::convert {

struct Part {
  std::filesystem::path root;
  std::string name;  // of the folder below it; "" for itself

  std::filesystem::path folder() const { return name.empty() ? root : root / name; }
  std::string below_root(const std::string& file) const { return (std::filesystem::path(name) / file).string(); }
};

// What a link names outside of the folder is not taken into a copy, be it weights or text: Error(data) names the first
// such link. A file is looked at again when it is open: this is to say so before anything is read.
void require_own_files(const Part& part);

// The config.json; Error(data) if it is no JSON object.
nlohmann::ordered_json read_config(const Part& part);

// The weights, of a checkpoint with its checksums compared. Error(data) names what is there in their place.
tensorfile::Safetensors open_weights(const Part& part);

}  // namespace hexad::convert
