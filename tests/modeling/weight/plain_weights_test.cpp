#include "modeling/weight/plain_weights.hpp"

#include <doctest/doctest.h>

namespace hexad::modeling {
namespace {

TEST_CASE("weights that cannot be read are called quantised where config.json says so") {
  ModelConfig config;
  const auto read = [&] {
    return of_plain_weights("m", config, []() -> int { fail("'q_proj.weight' has shape [512, 1]"); });
  };
  CHECK_THROWS_WITH_AS(read(), "'q_proj.weight' has shape [512, 1]", Error);
  config.original = {{"quantization_config", {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}}};
  CHECK_THROWS_WITH_AS(read(),
                       "m: the weights are quantized (config.json: bitsandbytes, 4 bits), and weights are read in "
                       "float32, bfloat16 or float16 alone. Take the model that this one was made of, or restore it in "
                       "Python: AutoModelForCausalLM.from_pretrained('m').dequantize().save_pretrained('<directory>') "
                       "('q_proj.weight' has shape [512, 1])",
                       Error);
  CHECK(of_plain_weights("m", config, [] { return 3; }) == 3);  // plain weights under such a config
}

}  // namespace
}  // namespace hexad::modeling
