#include "lib/model/family/wrapped.hpp"

#include <doctest/doctest.h>

using hexad::model::wrapped_text;
using nlohmann::json;

TEST_CASE("a config that wraps a text model's is a multimodal one") {
  CHECK(
      wrapped_text({{"model_type", "qwen2_5_vl"}, {"text_config", {{"model_type", "qwen2_5_vl_text"}}}}) ==
      "'qwen2_5_vl' is a model of more than text: its language model (qwen2_5_vl_text) stands in 'text_config' of the "
      "config. Such models are not available. Nearest: the text model of the same family, in a folder of its own");
  CHECK(wrapped_text({{"llm_config", json::object()}}).starts_with("'a model without model_type' is a model of more"));
  CHECK(wrapped_text({{"model_type", "llama"}, {"hidden_size", 8}, {"text_config", json::object()}}).empty());
  CHECK(wrapped_text({{"model_type", "llama"}}).empty());
}
