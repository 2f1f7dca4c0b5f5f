// Learning-rate schedules as transformers and verl name them, in PyTorch's classes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "lib/yaml/node.hpp"

namespace hexad::compat {

// A rise from 0 to `rate` over `warmup` steps, then `shape`, which falls to `floor` x `rate` at step `total`.
struct Schedule {
  enum class Shape { constant, linear, cosine };
  Shape shape = Shape::constant;
  double rate = 0;
  double floor = 0;  // of the rate
  int64_t warmup = 0;
  int64_t total = 0;  // of a shape that falls; above `warmup`
};

// policy.scheduler; null where the rate is constant from the start.
yaml::Node scheduler_of(const Schedule& schedule);

}  // namespace hexad::compat
