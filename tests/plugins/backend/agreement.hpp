// The check that a layout of any backend trains as plain autograd on one rank does.
#pragma once
#include "tests/plugins/backend/comparison.hpp"

namespace backend_test {

struct TestLayout {
  std::string name;
  json model;
  Packing packing;
  json sizes;  // keys of the backend's section of the policy
};

// `policy_of` makes the policy section from the model's folder and the layout's sizes.
inline void check_agrees(const TestLayout& layout,
                         const std::function<json(const std::filesystem::path&, const json&)>& policy_of) {
  const BoundedErrors errors =
      three_steps(layout.model, layout.packing, [&](const auto& dir) { return policy_of(dir, layout.sizes); });
  INFO(layout.name << ", " << layout.packing.sequences << (layout.packing.padded ? " padded" : " packed") << ", "
                   << layout.sizes.dump() << ": loss " << errors.loss << " grad " << errors.grad << " weight "
                   << errors.weight << " norm " << errors.norm << " logprob " << errors.logprob);
  CHECK(errors.loss <= errors.bound.loss);
  CHECK(errors.grad <= errors.bound.grad);
  CHECK(errors.weight <= errors.bound.weight);
  CHECK(errors.norm <= errors.bound.norm);
  CHECK(errors.logprob <= errors.bound.logprob);
}

}  // namespace backend_test
