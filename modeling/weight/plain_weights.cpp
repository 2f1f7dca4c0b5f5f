#include "modeling/weight/plain_weights.hpp"

#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::modeling {

void fail_to_read(const std::filesystem::path& dir, const ModelConfig& config, const Error& error) {
  std::string quantization = tensorfile::quantization_of(config.original);
  quantization = quantization.empty() ? tensorfile::quantization_beside(dir) : "config.json: " + quantization;
  if (quantization.empty()) throw error;
  fail("{} ({})", tensorfile::quantized_text(dir, quantization), error.what());
}

}  // namespace hexad::modeling
