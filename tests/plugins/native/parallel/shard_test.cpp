// Which part of the model each rank of a replica holds.
#include "plugins/native/parallel/shard.hpp"

#include "modeling/error.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

#include <doctest/doctest.h>

using namespace native_test;
using hexad::native::Shard;
using hexad::native::WeightPart;

namespace {

hexad::modeling::ModelConfig config_of(const std::string& family, int64_t kv_heads) {
  return TinyModel(family, false,
                   {{"num_attention_heads", 8}, {"num_key_value_heads", kv_heads}, {"intermediate_size", 60}})
      .config;
}

}  // namespace

TEST_CASE("the ranks' parts that count make up each weight that is cut, once; others are whole everywhere") {
  for (const std::string& family : families()) {
    for (const int64_t kv_heads : {4, 2}) {
      for (const int64_t ranks : {1, 2, 4}) {
        const auto config = config_of(family, kv_heads);
        std::map<std::string, at::Tensor> covered;
        size_t cut = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          for (const WeightPart& part : hexad::native::weight_parts(config, {rank, ranks})) {
            at::Tensor& whole = covered.try_emplace(part.name, at::zeros(part.global_shape)).first->second;
            if (part.whole() && rank > 0) continue;
            cut += !part.whole();
            at::Tensor box = whole;
            for (size_t d = 0; d < part.shape.size(); ++d)
              box = box.narrow(static_cast<int64_t>(d), part.offsets[d], part.shape[d]);
            if (part.counts) box.add_(1);
          }
        }
        for (const auto& [name, count] : covered) CHECK_MESSAGE(count.eq(1).all().item<bool>(), name);
        CHECK((cut > 0) == (ranks > 1));
      }
    }
  }
}

TEST_CASE("a rank's own sizes are its share, and at least one key/value head") {
  const auto config = config_of("qwen3", 2);
  const auto two = hexad::native::local_config(config, {1, 2}), four = hexad::native::local_config(config, {3, 4});
  CHECK((two.num_heads == 4 && two.num_kv_heads == 1 && two.intermediate_size == 30));
  CHECK((four.num_heads == 2 && four.num_kv_heads == 1 && four.intermediate_size == 15));
  CHECK(two.vocab_size == config.vocab_size);
  CHECK(hexad::native::head_rows(config, {3, 4}).begin == 75);  // of 97: 25, 25, 25, 22
  CHECK(hexad::native::head_rows(config, {3, 4}).size() == 22);
  CHECK_THROWS_AS(hexad::native::local_config(config, {0, 3}), hexad::modeling::Error);
}
