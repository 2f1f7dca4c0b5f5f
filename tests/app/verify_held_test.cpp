// The conformance kit on losses that let no gradient through in places (rule T6), and on curves and kinks.
#include "app/verify/verify.hpp"
#include "sdk/verify/case/slope.hpp"
#include "tests/plugin/plugin_folder.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

// -sum(w * advantage * logprob) / N, where no gradient goes through the ratio w; macros break it.
constexpr const char* kWeighed = R"(
#include <hexad/plugin.hpp>
#include <cmath>
#ifndef FLAGS
#define FLAGS HEXAD_SPEC_OPTIONAL
#endif
#ifndef HELD
#define HELD batch.held(4, 0)
#endif
#ifndef FACTOR
#define FACTOR 1
#endif
using namespace hexad::sdk;
struct Weighed {
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE), token_f32("prev_logprobs"), token_f32("advantages"),
      token_f32("token_mask"), token_f32("held_logprobs", FLAGS)};
  Weighed(const Call&, const Config&) {}
  void plan(const Call&, hexad_loss_plan& plan) const {
#ifdef DROPPED
    plan.used_inputs &= ~uint64_t{16};
#endif
  }
  void compute(const Call&, const LossBatch& batch, LossOut& out) const {
    const auto logprobs = batch.f32(0), previous = batch.f32(1), advantages = batch.f32(2), mask = batch.f32(3);
    const auto held = HELD;
    const double factor = batch.has(4) ? FACTOR : 1;
    for (size_t t = 0; t < logprobs.size(); ++t) {
      const double w = factor * std::exp(double{held[t]} - previous[t]) * mask[t] / batch.global_valid_tokens();
      out.loss() -= w * advantages[t] * logprobs[t];
      out.grad(0)[t] = static_cast<float>(-w * advantages[t] GRADIENT);
    }
  }
};
HEXAD_CPP_LOSS(Weighed, "weighed", "1.2.0", "MIT")
)";

// What levels 1 and 5 say of it.
std::string findings(const std::string& flags) {
  const PluginFolder folder;
  const std::string gradient = flags.find("-DGRADIENT") == std::string::npos ? " -DGRADIENT=" : "";
  const fs::path library = folder.compile_cpp("weighed", "-O2 -Wl,-z,now -Wl,--build-id " + flags + gradient, kWeighed);
  folder.write_manifest(library, "weighed");
  VerifyOptions options;
  options.levels = {1, 5};
  options.timeout_s = 60;
  std::string text;
  for (const LevelReport& level : verify_plugin(library.string(), options).levels) {
    for (const auto& finding : level.findings)
      text += fmt::format("L{} {}: {}\n", level.level, finding.check, finding.text);
  }
  return text;
}

}  // namespace

TEST_CASE("a loss whose weights let no gradient through passes, and a wrong gradient of it is found") {
  CHECK(findings("") == "");
  const std::string wrong = "L5 gradient: d loss / d logprobs[";
  SAYS(findings("'-DGRADIENT=* 1.1'"), wrong);
  SAYS(findings("'-DGRADIENT=* (1 + logprobs[t])'"), wrong);  // of the weights as well
  SAYS(findings("'-DHELD=batch.f32(0)'"), wrong);             // it does not take what it is given
  const std::string dropped = findings("-DDROPPED");          // by its plan
  CHECK_MESSAGE(contains(dropped, wrong), dropped);
  CHECK_MESSAGE(contains(dropped, " (a loss that stops gradients on purpose says so: rule T6)"), dropped);
}

TEST_CASE("an input that holds another changes nothing, and is declared optional") {
  SAYS(findings("-DFACTOR=2"), "L5 held: loss or gradient differ (");
  SAYS(findings("-DFLAGS=0"), "L1 names: 'held_logprobs' must be HEXAD_SPEC_OPTIONAL, not differentiable");
}

TEST_CASE("clipped_pg has the gradient of its loss in every configuration that stops gradients") {
  for (const char* keys : {"use_cispo=true", "force_on_policy_ratio=true", "disable_ppo_ratio=true"}) {
    const toy::Ended run =
        toy::run({"plugin", "verify", "clipped_pg", keys, "reference_policy_kl_penalty=2.0", "--level", "5"});
    CHECK_MESSAGE(run.code == 0, keys << "\n" << run.out << run.err);
  }
}

TEST_CASE("a curve is no kink, however curved, and a kink is found where it is near") {
  using hexad::verify::slope_at;
  const auto f32 = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  for (const double strength : {5.0, 50.0, 5e4}) {
    const auto parabola = [&](double x) { return 0.7 * (x + 0.9) - strength * (x + 0.9) * (x + 0.9); };
    for (double x = f32(-3); x < 0; x = f32(x + 0.01)) {
      const auto slope = slope_at(parabola, x, parabola(x));
      REQUIRE(slope);
      CHECK(slope->value == doctest::Approx(0.7 - 2 * strength * (x + 0.9)).epsilon(1e-6));
    }
  }
  for (const double rate : {1.0, 50.0, 300.0}) {
    const auto growth = [&](double x) { return std::exp(rate * x); };
    const auto slope = slope_at(growth, 0.125, growth(0.125));
    REQUIRE(slope);
    CHECK(slope->value == doctest::Approx(rate * growth(0.125)).epsilon(1e-4));
  }
  const double x = f32(-0.7);
  for (const double distance : {0.0, 5e-5, 1e-4, -1e-4}) {
    const auto bent = [&](double at) { return at > x + distance ? 2 * at : at + x + distance; };
    CHECK_FALSE(slope_at(bent, x, bent(x)));
  }
  for (const double distance : {1e-3, 3e-3, 5e-3}) {
    const auto bent = [&](double at) { return at > x + distance ? 2 * at : at + x + distance; };
    const auto slope = slope_at(bent, x, bent(x));
    REQUIRE(slope);
    CHECK(slope->value == doctest::Approx(1));
  }
}
