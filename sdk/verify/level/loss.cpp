#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sdk/verify/case/loss_case.hpp"
#include "sdk/verify/case/slope.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

constexpr double kGradient = 2e-3;  // largest difference from central differences, relative to the largest gradient
constexpr double kSplit = 1e-6;     // relative, of sums over parts
constexpr double kRounding = 1e-7;  // of a loss that is computed in f32, relative
constexpr int64_t kManyTokens = 1 << 20;

// One loss under test: the instance, what it uses, and the checks' shorthand.
class Bench {
 public:
  Bench(const Subject& subject, void* self, Findings& findings)
      : subject_(subject), self_(self), findings_(findings), use_(plan_of(subject, self, nullptr)) {}

  const hexad_loss_vtable& vtable() const { return *subject_.desc->loss; }
  Findings& findings() const { return findings_; }
  bool uses(uint32_t input) const { return use_.inputs >> input & 1; }
  bool repeatable() const { return verify::repeatable(subject_); }
  // Indices of the differentiable inputs, in the order of the gradients.
  std::vector<uint32_t> differentiable() const {
    std::vector<uint32_t> inputs;
    for (uint32_t i = 0; i < vtable().num_inputs; ++i) {
      if (vtable().inputs[i].flags & HEXAD_SPEC_DIFFERENTIABLE) inputs.push_back(i);
    }
    return inputs;
  }
  LossCase batch(const std::vector<int64_t>& lengths, uint64_t seed) const {
    return make_case(vtable(), lengths, seed);
  }
  LossResult run(const LossCase& batch) const { return verify::compute(subject_, self_, batch, use_); }
  // Whether the loss lets no gradient through in places, and a run that holds what it takes there.
  bool holds() const {
    for (uint32_t i = 0; i < vtable().num_inputs; ++i) {
      if (uses(i) && is_held(vtable().inputs[i])) return true;
    }
    return false;
  }
  LossResult with_held(const LossCase& batch) const {
    LossUse use = use_;
    use.held = true;
    return verify::compute(subject_, self_, batch, use);
  }
  // A run that has to succeed.
  LossResult good(const LossCase& batch, const std::string& what) const {
    LossResult result = run(batch);
    findings_.expect(result.code == HEXAD_OK, what, "compute failed: " + result.text);
    findings_.expect(result.damage.empty(), "canary", what + ": it wrote " + result.damage);
    return result;
  }
  LossResult without_optional(const LossCase& batch) const {
    LossUse use = use_;
    use.optional = false;
    return verify::compute(subject_, self_, batch, use);
  }

 private:
  const Subject& subject_;
  void* self_;
  Findings& findings_;
  LossUse use_;
};

bool near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max({std::abs(a), std::abs(b), 1e-3});
}

// Where the loss lets no gradient through it takes what it is given to hold. Given the values that it has anyway, it
// gives what it gives in a run.
void check_held(const Bench& bench, const LossCase& batch, const LossResult& result) {
  const LossResult held = bench.with_held(batch);
  bench.findings().expect(held.code == HEXAD_OK, "held", "compute failed with its held_ inputs: " + held.text);
  bool same = near(held.loss, result.loss, kSplit);
  for (size_t g = 0; g < result.grads.size(); ++g) {
    for (size_t t = 0; t < result.grads[g].size(); ++t) same = same && near(held.grads[g][t], result.grads[g][t], 1e-5);
  }
  bench.findings().expect(same, "held",
                          "loss or gradient differ (" + std::to_string(result.loss) + ", " + std::to_string(held.loss) +
                              ") when its held_ inputs hold what the held inputs are (rule T6)");
}

// Positions of the batch whose gradient differences could tell, and those at a kink.
struct Tested {
  int measured = 0, kinks = 0;
};

// The gradient by one input. `loss`: of the batch as it is.
void check_gradient_by(const Bench& bench, uint32_t input, const std::vector<float>& grad, LossCase& batch, double loss,
                       Tested& tested) {
  const std::string by = std::string("d loss / d ") + bench.vtable().inputs[input].name;
  const char* hint = bench.holds() ? "" : " (a loss that stops gradients on purpose says so: rule T6)";
  double largest = 1e-12;
  for (float value : grad) largest = std::max(largest, std::abs(static_cast<double>(value)));
  bench.findings().expect(largest > 1e-12, "gradient", "every " + by + " is 0");
  size_t position = 0;
  for (LossSequence& sequence : batch.sequences) {
    for (double& value : sequence.values[input]) {
      const size_t at = position++;
      const double original = value;
      const auto loss_with = [&](double moved) {
        value = moved;
        return bench.with_held(batch).loss;
      };
      const std::optional<Slope> expected = slope_at(loss_with, original, loss);
      value = original;
      ++(expected ? tested.measured : tested.kinks);
      if (!expected) continue;
      // A difference of two losses keeps their rounding: terms of size 1, divided by the tokens, as far as f32 goes.
      const double rounding = 2 * kRounding / expected->step / batch.valid_tokens;
      bench.findings().expect(std::abs(expected->value - grad[at]) <= kGradient * largest + rounding, "gradient",
                              by + "[" + std::to_string(at) + "] is " + std::to_string(grad[at]) +
                                  ", central differences give " + std::to_string(expected->value) + hint);
    }
  }
}

void check_gradient(const Bench& bench) {
  LossCase batch = bench.batch({1, 9, 16, 23}, 101);
  const LossResult result = bench.good(batch, "gradient");
  if (bench.holds()) check_held(bench, batch, result);
  const double loss = bench.with_held(batch).loss;
  const std::vector<uint32_t> inputs = bench.differentiable();
  Tested tested;
  for (size_t g = 0; g < inputs.size(); ++g) {
    if (bench.uses(inputs[g]) && !result.grads[g].empty())
      check_gradient_by(bench, inputs[g], result.grads[g], batch, loss, tested);
  }
  bench.findings().prefer(tested.measured > tested.kinks, "gradient",
                          "most positions stand at a kink of the loss: the gradient was hardly tested");
}

// Tokens that a mask takes away have no gradient.
void check_masks(const Bench& bench) {
  const LossCase batch = bench.batch({9, 16}, 102);
  const LossResult result = bench.good(batch, "mask");
  const std::vector<uint32_t> inputs = bench.differentiable();
  for (uint32_t m = 0; m < bench.vtable().num_inputs; ++m) {
    const hexad_tensor_spec& mask = bench.vtable().inputs[m];
    if (!is_mask(mask) || !bench.uses(m)) continue;
    for (size_t g = 0; g < inputs.size(); ++g) {
      if (bench.vtable().inputs[inputs[g]].axis != HEXAD_AXIS_TOKEN) continue;
      size_t position = 0;
      for (const LossSequence& sequence : batch.sequences) {
        for (int64_t t = 0; t < sequence.length; ++t, ++position) {
          const bool masked = sequence.values[m][mask.axis == HEXAD_AXIS_TOKEN ? t : 0] == 0;
          if (!masked || result.grads[g].empty()) continue;
          bench.findings().expect(result.grads[g][position] == 0, "mask",
                                  std::string("token ") + std::to_string(position) + " has " + mask.name +
                                      " 0 and a gradient of " + std::to_string(result.grads[g][position]));
        }
      }
    }
  }
}

void check_sum(const Bench& bench, const LossResult& whole, const std::vector<LossResult>& parts,
               const std::string& what) {
  double loss = 0;
  std::vector<std::vector<float>> grads(whole.grads.size());
  for (const LossResult& part : parts) {
    loss += part.loss;
    for (size_t g = 0; g < grads.size(); ++g)
      grads[g].insert(grads[g].end(), part.grads[g].begin(), part.grads[g].end());
  }
  bench.findings().expect(
      near(loss, whole.loss, kSplit), what,
      "the loss of the whole batch is " + std::to_string(whole.loss) + ", its parts sum to " + std::to_string(loss));
  for (size_t g = 0; g < grads.size(); ++g) {
    for (size_t t = 0; t < grads[g].size(); ++t) {
      bench.findings().expect(near(grads[g][t], whole.grads[g][t], 1e-5), what,
                              "the gradient at token " + std::to_string(t) + " is " +
                                  std::to_string(whole.grads[g][t]) + " in the whole batch and " +
                                  std::to_string(grads[g][t]) + " in its part: divide by the global normalizers alone");
    }
  }
}

// Sums and weighted means are reduced by adding {value, weight} over micro-batches and ranks.
void check_metric_sums(const Bench& bench, const LossResult& whole, const std::vector<LossResult>& parts) {
  for (uint32_t m = 0; m < bench.vtable().num_metrics; ++m) {
    const hexad_metric_spec& metric = bench.vtable().metrics[m];
    if (metric.reduce != HEXAD_REDUCE_SUM && metric.reduce != HEXAD_REDUCE_MEAN) continue;
    double value = 0;
    for (const LossResult& part : parts) value += part.metrics[2 * m];
    bench.findings().expect(near(value, whole.metrics[2 * m], 1e-5), "metric split",
                            std::string("the value of '") + metric.name + "' is " +
                                std::to_string(whole.metrics[2 * m]) + " over the whole batch, its parts sum to " +
                                std::to_string(value) + ": report sums, not means");
  }
}

// Micro-batches must not change the result: parts sum to the whole, in any order.
void check_parts(const Bench& bench) {
  const LossCase batch = bench.batch({5, 1, 16, 9, 2}, 103);
  const LossResult whole = bench.good(batch, "split");
  std::vector<LossResult> parts;
  for (const auto& order : std::vector<std::vector<size_t>>{{0, 1}, {2}, {3, 4}})
    parts.push_back(bench.good(batch.part(order), "split"));
  check_sum(bench, whole, parts, "split");
  check_metric_sums(bench, whole, parts);
  const LossResult turned = bench.good(batch.part({4, 3, 2, 1, 0}), "permutation");
  bench.findings().expect(near(turned.loss, whole.loss, kSplit), "permutation",
                          "the loss is " + std::to_string(whole.loss) + ", and " + std::to_string(turned.loss) +
                              " with the sequences in reverse order");
  if (bench.repeatable())
    bench.findings().expect(bench.run(batch).bits() == whole.bits(), "repeatable",
                            "two runs on one batch differ; declare HEXAD_CAP_NONDETERMINISTIC");
}

void check_sizes(const Bench& bench) {
  LossCase empty = bench.batch({}, 104);
  bench.findings().expect(bench.good(empty, "empty batch").loss == 0, "empty batch",
                          "the loss of no sequences is not 0");
  bench.good(bench.batch({1}, 105), "one token");
  bench.good(bench.batch({0, 3, 0}, 106), "empty sequence");
  const LossCase batch = bench.batch({6, 7}, 107);
  const LossResult bare = bench.without_optional(batch);
  bench.findings().expect(bare.code == HEXAD_OK || !bare.text.empty(), "optional inputs",
                          "compute fails without its optional inputs, and without a text");
}

// A million tokens: sums in f32 drift where sums of parts do not.
void check_drift(const Bench& bench) {
  const LossCase batch = bench.batch(std::vector<int64_t>(kManyTokens / 1024, 1024), 108);
  const LossResult whole = bench.good(batch, "a million tokens");
  double sum = 0;
  for (size_t i = 0; i < batch.units(); ++i) sum += bench.run(batch.part({i})).loss;
  bench.findings().expect(near(sum, whole.loss, kSplit), "a million tokens",
                          "the loss is " + std::to_string(whole.loss) + ", its 1,024 sequences one by one sum to " +
                              std::to_string(sum) + ": accumulate in double");
}

// The loss and gradient of a batch whose first sequence ends with `bad`, all masks 1: true if nothing shows it.
bool hides(const Bench& bench, uint32_t input, double bad) {
  LossCase batch = bench.batch({8, 8}, 109);
  for (uint32_t m = 0; m < bench.vtable().num_inputs; ++m) {
    if (!is_mask(bench.vtable().inputs[m])) continue;
    for (LossSequence& sequence : batch.sequences) std::ranges::fill(sequence.values[m], 1.0);
  }
  batch.sequences[0].values[input].back() = bad;
  const LossResult result = bench.run(batch);
  bool finite = std::isfinite(result.loss);
  for (const auto& grad : result.grads) {
    for (float value : grad) finite = finite && std::isfinite(value);
  }
  return result.code == HEXAD_OK && finite;
}

// A number that is none must not become a good loss. (A loss may clamp an infinite one, but should not.)
void check_nonfinite(const Bench& bench) {
  for (uint32_t input : bench.differentiable()) {
    if (!bench.uses(input)) continue;
    const std::string name = std::string("'") + bench.vtable().inputs[input].name + "' with ";
    const char* seen = " at a valid token gave a finite loss and gradient: the step would be taken";
    bench.findings().expect(!hides(bench, input, std::nan("")), "non-finite input", name + "NaN" + seen);
    bench.findings().prefer(!hides(bench, input, std::numeric_limits<double>::infinity()), "infinite input",
                            name + "inf" + seen);
  }
}

}  // namespace

void check_loss(const Subject& subject, Findings& findings) {
  const Instance instance(subject, subject.engine->host());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  const Bench bench(subject, instance.self(), findings);
  if (bench.run(bench.batch({4}, 1)).code != HEXAD_OK) {
    findings.expect(false, "compute", "fails on an ordinary batch: " + bench.run(bench.batch({4}, 1)).text);
    return;
  }
  check_gradient(bench);
  check_masks(bench);
  check_parts(bench);
  check_sizes(bench);
  check_nonfinite(bench);
  check_drift(bench);
}

}  // namespace hexad::verify
