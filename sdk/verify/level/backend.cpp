#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>

#include <hexad/names.hpp>

#include "sdk/verify/case/backend_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

constexpr int kSteps = 10;
constexpr double kRate = 1e-2;
constexpr int kStepsBeforeSave = 2;
constexpr double kForwardTrain = 1e-4;  // log-probs of the two passes
constexpr double kSums = 1e-4;          // relative, of gradients over micro-batches
constexpr double kResumed = 1e-5;       // log-probs after a step

// One backend under test; each function reports and returns whether going on makes sense.
class Bench {
 public:
  Bench(const Subject& subject, hexad_backend* self, Findings& findings)
      : subject_(subject), self_(self), findings_(findings) {}

  ~Bench() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  bool describe() {
    hexad_backend_info info{};
    info.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
    if (!run("describe", [&](hexad_call* call) { return vtable().describe(self_, call, &info); })) return false;
    const int64_t sizes[] = {info.dp_size,
                             info.tp_size,
                             info.pp_size,
                             info.cp_size,
                             info.ep_size,
                             info.sequence_multiple,
                             info.micro_batch_multiple};
    findings_.expect(std::ranges::all_of(sizes, [](int64_t size) { return size >= 1; }), "describe",
                     "a parallel size or a multiple is below 1");
    findings_.expect(info.num_parameters >= 1, "describe", "num_parameters is " + std::to_string(info.num_parameters));
    const bool ids = info.num_inputs >= 1 && std::string_view(info.inputs[0]) == "input_ids";
    const bool logprobs = std::any_of(info.outputs, info.outputs + info.num_outputs,
                                      [](const char* name) { return std::string_view(name) == "logprobs"; });
    findings_.expect(logprobs, "describe", "outputs lack logprobs, which every loss differentiates");
    check_names(info);
    return findings_.expect(ids, "describe", "the first input is not input_ids");
  }

  // Outputs that a loss may differentiate, and columns that a batch may have.
  void check_names(const hexad_backend_info& info) {
    const auto check = [&](const char* name, const char* list, bool made) {
      const sdk::KnownTensor* known = sdk::known_tensor(name);
      const bool right = known ? (known->source == sdk::Source::backend) == made : sdk::is_own_name(name);
      findings_.expect(right, "names",
                       std::string("'") + name + "' among its " + list + " is no tensor of this kind" +
                           sdk::meant_name(name) + sdk::kOwnNames);
    };
    for (int64_t i = 0; i < info.num_outputs; ++i) check(info.outputs[i], "outputs", /*made=*/true);
    for (int64_t i = 0; i < info.num_inputs; ++i) check(info.inputs[i], "inputs", /*made=*/false);
  }

  std::vector<float> logprobs(int32_t which = HEXAD_WEIGHTS_CURRENT) {
    const BackendResult result = forward(subject_, self_, batch_, which);
    findings_.expect(result.code == HEXAD_OK, "forward", "it failed: " + result.text);
    findings_.expect(result.damage.empty(), "canary", "forward wrote " + result.damage);
    return result.logprobs;
  }

  void check_forward() {
    const std::vector<float> values = logprobs();
    for (float value : values)
      findings_.expect(std::isfinite(value) && value <= 1e-6f, "log-probs", "one is " + std::to_string(value));
    for (size_t i = 0; i + 1 < batch_.cu_seqlens.size(); ++i) {
      const size_t first = static_cast<size_t>(batch_.cu_seqlens[i]);
      findings_.expect(values[first] == 0, "log-probs",
                       "the first position of sequence " + std::to_string(i) + " holds " +
                           std::to_string(values[first]) + ", wanted 0");
    }
    findings_.expect(logprobs() == values, "repeatable", "two forward passes differ");
    const TokenBatch alone = make_tokens({6}, 21);
    const BackendResult first = forward(subject_, self_, alone);
    for (size_t t = 0; t < alone.ids.size() && first.code == HEXAD_OK; ++t) {
      findings_.expect(std::abs(first.logprobs[t] - values[t]) <= kForwardTrain, "packing",
                       "the log-prob of token " + std::to_string(t) + " depends on the sequences beside it");
    }
  }

  // Once training has made the distribution uneven.
  void check_temperature() {
    const double hot = 2;
    const BackendResult result = forward(subject_, self_, batch_, HEXAD_WEIGHTS_CURRENT, {}, hot);
    findings_.expect(result.logprobs != logprobs(), "temperature", "forward at temperature 2 gives the log-probs of 1");
    const BackendResult trained = train(subject_, self_, {batch_}, 0, hot);
    expect_near(trained.logprobs, result.logprobs, kForwardTrain, "train is forward", "in train at temperature 2 ");
    step(subject_, self_, 0, HEXAD_STEP_DISCARD);
  }

  // With nothing accumulated there is no step to be made.
  void check_idle_step() {
    const std::vector<float> before = logprobs();
    const BackendResult idle = step(subject_, self_, kRate);
    findings_.expect(idle.code == HEXAD_OK || !idle.text.empty(), "error text",
                     "a step without train fails without one");
    findings_.expect(logprobs() == before, "step without train", "it changed the weights");
  }

  // The gradient is the sum over the micro-batches, whatever they are.
  void check_sums() {
    const TokenBatch first = make_tokens({5, 3}, 22), second = make_tokens({9}, 23), dummy;
    const double whole = norm_of({joined(first, second)}), parts = norm_of({first, second}),
                 padded = norm_of({first, dummy, second});
    findings_.expect(std::abs(parts - whole) <= kSums * whole, "gradient sum",
                     "its norm is " + std::to_string(whole) + " over one micro-batch, and " + std::to_string(parts) +
                         " over the same sequences in two: sum, and divide by nothing");
    findings_.expect(std::abs(padded - parts) <= kSums * parts, "dummy batch",
                     "the gradient's norm is " + std::to_string(parts) + ", and " + std::to_string(padded) +
                         " with a dummy micro-batch between");
  }

  bool train_step(double gradient, double rate, uint32_t flags, BackendResult* trained, BackendResult* stepped) {
    *trained = train(subject_, self_, {batch_}, gradient);
    if (!findings_.expect(trained->code == HEXAD_OK, "train", "it failed: " + trained->text)) return false;
    findings_.expect(trained->damage.empty(), "canary", "train wrote " + trained->damage);
    *stepped = step(subject_, self_, rate, flags);
    return findings_.expect(stepped->code == HEXAD_OK, "step", "it failed: " + stepped->text);
  }

  void check_training() {
    BackendResult trained, stepped;
    const std::vector<float> before = logprobs();
    if (!train_step(0, kRate, HEXAD_STEP_DISCARD, &trained, &stepped)) return;
    expect_near(trained.logprobs, before, kForwardTrain, "train is forward", "in train ");
    findings_.expect(logprobs() == before, "discard", "a step with HEXAD_STEP_DISCARD changed the weights");
    if (!train_step(std::numeric_limits<double>::quiet_NaN(), kRate, 0, &trained, &stepped)) return;
    findings_.expect(stepped.skipped == 1, "non-finite gradient", "a step on NaN gradients says skipped = 0");
    findings_.expect(logprobs() == before, "non-finite gradient", "a step on NaN gradients changed the weights");
    keep(before);
    std::vector<float> saved, next;
    double first = 0;
    for (int i = 0; i < kSteps; ++i) {
      if (i == kStepsBeforeSave) saved = save();
      if (!train_step(0, kRate, 0, &trained, &stepped)) return;
      findings_.expect(stepped.skipped == 0 && std::isfinite(stepped.grad_norm) && stepped.grad_norm > 0, "step",
                       "step " + std::to_string(i + 1) + " has grad_norm " + std::to_string(stepped.grad_norm));
      if (i == 0) first = trained.loss;
      if (i == kStepsBeforeSave) next = logprobs();
    }
    findings_.expect(trained.loss < first, "learning",
                     "the loss went from " + std::to_string(first) + " to " + std::to_string(trained.loss) + " in " +
                         std::to_string(kSteps) + " steps on one batch");
    findings_.expect(logprobs(HEXAD_WEIGHTS_REFERENCE) == before, "keep",
                     "the kept weights changed with the current ones");
    load_again(saved, next);
  }

  // Exported are the weights of now.
  void check_weights() {
    const auto now = export_weights(subject_, self_, findings_);
    findings_.expect(exported_.empty() || now != exported_, "weights_next",
                     "after training the weights are those of before");
    findings_.expect(export_weights(subject_, self_, findings_) == now, "weights_next",
                     "two iterations without a step between them give other bytes");
  }

 private:
  const hexad_backend_vtable& vtable() const { return *subject_.desc->backend; }

  template <typename Function>
  bool run(const std::string& name, Function&& function) {
    const auto call = subject_.engine->call();
    const hexad_code code = function(call->handle());
    return findings_.expect(code == HEXAD_OK, name, "it failed: " + call->text());
  }

  void expect_near(const std::vector<float>& got, const std::vector<float>& wanted, double bound,
                   const std::string& check, const std::string& where) {
    findings_.expect(got.size() == wanted.size(), check, where + "there is not one log-prob a token");
    for (size_t t = 0; t < std::min(got.size(), wanted.size()); ++t) {
      findings_.expect(std::abs(got[t] - wanted[t]) <= bound, check,
                       where + "token " + std::to_string(t) + " has the log-prob " + std::to_string(got[t]) +
                           ", wanted " + std::to_string(wanted[t]));
    }
  }

  // Of the gradient of one global batch at the weights that were saved.
  double norm_of(const std::vector<TokenBatch>& batches) {
    load();
    const BackendResult trained = train(subject_, self_, batches);
    findings_.expect(trained.code == HEXAD_OK, "train", "it failed: " + trained.text);
    return step(subject_, self_, kRate).grad_norm;
  }

  void keep(const std::vector<float>& before) {
    run("keep", [&](hexad_call* call) { return vtable().keep(self_, call, HEXAD_WEIGHTS_REFERENCE); });
    findings_.expect(logprobs(HEXAD_WEIGHTS_REFERENCE) == before, "keep",
                     "the kept weights give other log-probs than the current ones");
    exported_ = export_weights(subject_, self_, findings_);
  }

  // Returns the log-probs of what was saved.
  std::vector<float> save() {
    std::filesystem::create_directories(weights_);
    std::filesystem::create_directories(optimizer_);
    const auto args = checkpoint();
    run("save", [&](hexad_call* call) { return vtable().save(self_, call, &args); });
    return logprobs();
  }

  bool load() {
    const auto args = checkpoint();
    return run("load", [&](hexad_call* call) { return vtable().load(self_, call, &args); });
  }

  void load_again(const std::vector<float>& saved, const std::vector<float>& next) {
    if (!load()) return;
    findings_.expect(logprobs() == saved, "save and load",
                     "the weights that were loaded are not those that were saved, bit for bit");
    BackendResult trained, stepped;
    if (train_step(0, kRate, 0, &trained, &stepped))
      expect_near(logprobs(), next, kResumed, "save and load",
                  "the step after loading is another than that after saving; is the optimizer's state saved? ");
  }

  hexad_checkpoint_args checkpoint() const {
    return {HEXAD_STRUCT_SIZE(hexad_checkpoint_args, reserved),
            HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER,
            weights_.c_str(),
            optimizer_.c_str(),
            HEXAD_WEIGHTS_CURRENT,
            0};
  }

  const Subject& subject_;
  hexad_backend* self_;
  Findings& findings_;
  std::map<std::string, std::string> exported_;  // before training
  TokenBatch batch_ = make_tokens({6, 1, 9}, 21);
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("hexad-verify-" + std::to_string(::getpid()));
  std::string weights_ = folder_ / "weights", optimizer_ = folder_ / "optimizer";
};

}  // namespace

void check_backend(const Subject& subject, Findings& findings) {
  const Instance instance(subject, subject.engine->host());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  Bench bench(subject, static_cast<hexad_backend*>(instance.self()), findings);
  if (!bench.describe()) return;
  bench.check_forward();
  bench.check_idle_step();
  bench.check_training();
  bench.check_temperature();
  bench.check_weights();
  bench.check_sums();
  check_group(subject, findings);
}

}  // namespace hexad::verify
