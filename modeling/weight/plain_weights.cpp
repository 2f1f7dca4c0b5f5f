#include "modeling/weight/plain_weights.hpp"

#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::modeling {

void fail_to_read(const std::filesystem::path& dir, const ModelConfig& config, const Error& error) {
  const std::string quantization = tensorfile::quantization_of(config.original);
  if (quantization.empty()) throw error;
  fail("{} ({})", tensorfile::quantized_text(dir, quantization), error.what());
}

}  // namespace hexad::modeling
