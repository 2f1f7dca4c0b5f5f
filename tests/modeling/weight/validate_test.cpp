#include "modeling/weight/validate.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "modeling/error.hpp"
#include "modeling/weight/safetensors_writer.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace hexad::modeling {
namespace {

SafetensorsReader stored(const TemporaryDir& dir, const std::vector<TensorSpec>& specs) {
  SafetensorsWriter writer(dir.path(), specs);
  for (const TensorSpec& spec : specs) writer.write(spec.name, at::ones(spec.shape));
  writer.finish();
  return SafetensorsReader(dir.path());
}

const std::vector<WeightInfo> kTable = {{"a", {2, 3}, "embed"}, {"b", {3}, "head"}};

TEST_CASE("complete weights pass; what the model does not use is a warning") {
  const TemporaryDir dir;
  const SafetensorsReader reader = stored(dir, {{"a", {2, 3}, at::kFloat},
                                                {"b", {3}, at::kBFloat16},
                                                {"lm_head.weight", {2, 3}, at::kFloat},
                                                {"model.rotary_emb.inv_freq", {4}, at::kFloat},
                                                {"vision.weight", {1}, at::kFloat}});
  const std::vector<std::string> want = {(dir / "model.safetensors").string() +
                                         ": 'vision.weight' is not used by this model"};
  CHECK(validate_weights(reader, kTable) == want);
}

TEST_CASE("layers beyond the model's, multi-token prediction, are left out in one line") {
  const TemporaryDir dir;
  const std::vector<WeightInfo> table = {{"model.layers.0.a", {2}, "layers.0"}, {"model.layers.9.a", {2}, "layers.9"}};
  const SafetensorsReader reader = stored(dir, {{"model.layers.0.a", {2}, at::kFloat},
                                                {"model.layers.9.a", {2}, at::kFloat},
                                                {"model.layers.9.b", {2}, at::kFloat},
                                                {"model.layers.10.a", {2}, at::kFloat},
                                                {"model.layers.10.eh_proj.weight", {2}, at::kFloat}});
  const std::vector<std::string> want = {
      (dir / "model.safetensors").string() + ": 'model.layers.9.b' is not used by this model",
      dir.path().string() + ": 2 weights of layers beyond the config's 10 (multi-token prediction) are left out"};
  CHECK(validate_weights(reader, table) == want);
}

TEST_CASE("missing and wrong-shaped weights are refused") {
  const TemporaryDir dir;
  const std::string file = (dir / "model.safetensors").string();
  CHECK_THROWS_WITH_AS(validate_weights(stored(dir, {{"b", {3}, at::kFloat}}), kTable),
                       (dir.path().string() + ": 1 of 2 weights are missing: a").c_str(), Error);
  CHECK_THROWS_WITH_AS(validate_weights(stored(dir, {{"a", {3, 2}, at::kFloat}, {"b", {3}, at::kFloat}}), kTable),
                       (file + ": 'a' has shape [3, 2], the config wants [2, 3]").c_str(), Error);
  CHECK_THROWS_WITH_AS(validate_weights(stored(dir, {{"a", {2, 3}, at::kInt}, {"b", {3}, at::kFloat}}), kTable),
                       (file + ": 'a' has dtype Int, wanted F32, BF16 or F16").c_str(), Error);
}

TEST_CASE("non-finite weights are refused with the first bad element") {
  at::Tensor weight = at::ones({2, 3}).to(at::kBFloat16);
  require_finite(weight, "w", "f");
  require_finite(at::full({1000}, 3e38, at::kFloat), "w", "f");
  weight[1][1] = NAN;
  weight[1][2] = INFINITY;
  CHECK_THROWS_WITH_AS(require_finite(weight, "w", "f"),
                       "f: 'w' holds 2 values that are not finite; the first is nan at element 4", Error);
}

}  // namespace
}  // namespace hexad::modeling
