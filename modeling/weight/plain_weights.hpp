// Errors about stored weights that config.json calls quantised.
#pragma once
#include <filesystem>

#include "modeling/error.hpp"
#include "modeling/family/model_config.hpp"

namespace hexad::modeling {

// Throws `error`, of weights that could not be read, again: as one about quantised weights where config.json calls them
// so, since their names, shapes and types are others.
[[noreturn]] void fail_to_read(const std::filesystem::path& dir, const ModelConfig& config, const Error& error);

// What `read` gives, with such errors.
template <typename Read>
auto of_plain_weights(const std::filesystem::path& dir, const ModelConfig& config, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    fail_to_read(dir, config, error);
  }
}

}  // namespace hexad::modeling
