// Sizes of batches. TRL counts micro-batches of a device: `gradient_accumulation_steps` of them make an optimizer step,
// `steps_per_generation` of them are drawn at once.
#include <cmath>
#include <numeric>

#include "compat/trl/pass.hpp"

namespace hexad::compat::trl {
namespace {

struct Sizes {
  int64_t micro, accumulation, steps_per_generation, generations, iterations;
};

// Of a dump TRL has filled in both: generation_batch_size is what is left then.
int64_t steps_per_generation(Foreign& args, int64_t devices, int64_t accumulation) {
  const bool steps = args.given("steps_per_generation"), batch = args.given("generation_batch_size");
  if (steps) return args.count("steps_per_generation");
  if (!batch) return accumulation;
  const int64_t size = args.count("generation_batch_size");
  if (size % devices != 0)
    args.refuse(
        "generation_batch_size",
        fmt::format("got {}, wanted a multiple of per_device_train_batch_size x processes = {}", size, devices));
  return size / devices;
}

Sizes sizes_of(Pass& p) {
  Foreign& args = p.args;
  Sizes s{};
  s.micro = args.count("per_device_train_batch_size");
  s.accumulation = args.count("gradient_accumulation_steps");
  s.generations = args.count("num_generations", 2);
  s.iterations = args.count("num_iterations");
  const int64_t devices = product(args, "per_device_train_batch_size", {s.micro, p.processes});
  s.steps_per_generation = steps_per_generation(args, devices, s.accumulation);
  const int64_t drawn = product(args, "steps_per_generation", {devices, s.steps_per_generation});
  if (drawn % s.generations != 0)
    args.refuse("num_generations", fmt::format("got {}, wanted a divisor of the generation batch {} "
                                               "(per_device_train_batch_size {} x {} processes x "
                                               "steps_per_generation {}); --processes says how many",
                                               s.generations, drawn, s.micro, p.processes, s.steps_per_generation));
  return s;
}

void tell_differences(Pass& p, const Sizes& s, int64_t micro_batches) {
  if (micro_batches != s.steps_per_generation && micro_batches != s.accumulation)
    p.out.leave_out("steps_per_generation",
                    fmt::format("{} and gradient_accumulation_steps {} do not divide each other: a step here draws {} "
                                "micro-batches at once, and its later optimizer steps train on older samples",
                                s.steps_per_generation, s.accumulation, micro_batches));
  if (s.iterations > 1)
    p.out.leave_out(
        "num_iterations",
        fmt::format("{}, and here each sample trains once; steps are counted by samples drawn", s.iterations));
}

}  // namespace

int64_t product(const Foreign& args, const std::string& key, std::initializer_list<int64_t> factors) {
  constexpr int64_t kMost = int64_t{1} << 53;
  int64_t result = 1;
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result) || result > kMost)
      args.refuse(key, "the batch that it is a part of is larger than 2^53 samples; wanted a smaller one");
  }
  return result;
}

int64_t Pass::steps_of(double optimizer_steps_of_trl) const {
  constexpr double kMost = 9e15;  // of the integers that a double holds exactly
  const double steps = std::ceil(optimizer_steps_of_trl / optimizer_steps - 1e-9);
  return static_cast<int64_t>(std::clamp(steps, 1.0, kMost));
}

void translate_generation_batch(Pass& p) {
  const Sizes s = sizes_of(p);
  const int64_t micro_batches = std::lcm(s.steps_per_generation, s.accumulation);
  const int64_t samples = product(p.args, "steps_per_generation", {s.micro, p.processes, micro_batches});
  const int64_t passes = micro_batches / s.accumulation;  // exact: a multiple of both
  p.optimizer_steps = static_cast<double>(passes) * static_cast<double>(s.iterations);

  const bool several = micro_batches == s.accumulation && s.accumulation > s.steps_per_generation;
  const std::string factor =
      several ? fmt::format("gradient_accumulation_steps {}: {} generations of TRL's, all by the same weights",
                            s.accumulation, s.accumulation / s.steps_per_generation)
              : fmt::format("steps_per_generation {}", micro_batches);
  p.out.set("grpo.num_prompts_per_step", samples / s.generations,
            fmt::format("per_device_train_batch_size {} x {} processes x {}; / num_generations {}", s.micro,
                        p.processes, factor, s.generations));
  p.out.set("grpo.num_generations_per_prompt", s.generations);
  p.out.set("policy.train_global_batch_size",
            product(p.args, "gradient_accumulation_steps", {s.micro, p.processes, s.accumulation}),
            fmt::format("samples: per_device_train_batch_size {} x {} processes x gradient_accumulation_steps {}",
                        s.micro, p.processes, s.accumulation));
  p.out.set("policy.train_micro_batch_size", s.micro);
  tell_differences(p, s, micro_batches);
}

void translate_batch(Pass& p) {
  const int64_t micro = p.args.count("per_device_train_batch_size");
  const int64_t accumulation = p.args.count("gradient_accumulation_steps");
  p.out.set("policy.train_global_batch_size",
            product(p.args, "gradient_accumulation_steps", {micro, p.processes, accumulation}),
            fmt::format("{}: per_device_train_batch_size {} x {} processes x gradient_accumulation_steps {}",
                        p.trainer == Trainer::sft ? "conversations" : "pairs", micro, p.processes, accumulation));
  p.out.set("policy.train_micro_batch_size", micro);
}

}  // namespace hexad::compat::trl
