// Counts what a rendering uses against its RenderLimits; everything that works in proportion to data asks here first.
#pragma once
#include <cstdint>

#include "lib/text/template/chat_template.hpp"
#include "lib/text/template/fault.hpp"

namespace hexad::text::jinja {

class Budget {
 public:
  explicit Budget(const RenderLimits& limits) : limits_(limits) {}

  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps) fault("the template runs too long (more than {} steps)", limits_.steps);
  }
  // Work on `bytes` of text.
  void touch(uint64_t bytes) { step(1 + bytes / 32); }
  // Memory for a new value; counts as work too. Call it before the memory is taken.
  void allocate(uint64_t bytes) {
    if (bytes > limits_.memory_bytes || memory_ > limits_.memory_bytes - bytes) {
      fault("the template uses too much memory (more than {} bytes)", limits_.memory_bytes);
    }
    memory_ += bytes;
    touch(bytes);
  }
  void require_output(uint64_t bytes) const {
    if (bytes > limits_.output_bytes)
      fault("the template's output is too long (more than {} bytes)", limits_.output_bytes);
  }

  // Held while one level of a recursion lasts.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (budget_.depth_ >= budget_.limits_.depth)
        fault("the template nests too deeply (more than {} levels)", budget_.limits_.depth);
      ++budget_.depth_;
    }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  RenderLimits limits_;
  uint64_t steps_ = 0, memory_ = 0;
  int depth_ = 0;
};

}  // namespace hexad::text::jinja
