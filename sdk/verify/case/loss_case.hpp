// Batches for a loss, made from the inputs that it declares, and what compute makes of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/verify/engine.hpp"

namespace hexad::verify {

// What plan left of the declared lists.
struct LossUse {
  uint64_t inputs = ~uint64_t{0};
  bool optional = true;  // whether optional inputs are given
  bool held = false;     // whether those of them are that hold another input (rule T6)
};

// One sequence: for every declared input its values, `length` of them for token inputs, one for sample inputs.
struct LossSequence {
  int64_t length = 0;
  std::vector<std::vector<double>> values;
};

// Sequences of one global batch, in units whose rows are never parted: pairs for a loss that declares `unit_id`, else
// single sequences. A part of it (some units, another order) keeps the global normalizers.
struct LossCase {
  std::vector<LossSequence> sequences;
  double valid_tokens = 0, valid_sequences = 0;
  size_t rows_per_unit = 1;

  int64_t num_tokens() const;
  size_t units() const { return sequences.size() / rows_per_unit; }
  LossCase part(const std::vector<size_t>& order) const;
};

// Random values that are possible: log-probs are negative and near each other, masks 0 or 1, the first position of a
// sequence holds 0. Equal seeds give equal sequences, whatever stands beside them. `lengths`: of the sequences, or of
// both sequences of each pair.
LossCase make_case(const hexad_loss_vtable& vtable, const std::vector<int64_t>& lengths, uint64_t seed);
bool is_mask(const hexad_tensor_spec& spec);
bool is_held(const hexad_tensor_spec& spec);  // its values are those of the input that it holds

struct LossResult {
  hexad_code code = HEXAD_OK;
  std::string text;  // of the error
  double loss = 0;
  std::vector<std::vector<float>> grads;  // one per differentiable input, in declared order; empty where absent
  std::vector<double> metrics;            // [num_metrics][2]
  std::string damage;                     // what was written that may not be; empty if nothing

  // Of loss, gradients and metrics: equal bits give equal text.
  std::string bits() const;
};

// Runs plan (if there is one); a failure is in *error.
LossUse plan_of(const Subject& subject, void* instance, std::string* error);

class GuardedTensor;

// One call of compute in the making: its tensors are laid out, where the subject wants them, and not yet uploaded.
class LossCall {
 public:
  // `grown`: batch and outputs as a later minor would pass them, with poison behind the fields of today.
  LossCall(const Subject& subject, const LossCase& batch, const LossUse& use, bool grown = false);
  ~LossCall();

  std::vector<GuardedTensor*> tensors() const;  // inputs, then outputs
  void upload();
  // Calls the plugin; fetches nothing.
  LossResult run(void* instance, const CallOptions& options = {});
  // Fetches the outputs and what lies around them.
  void fetch(LossResult& result);

 private:
  struct Arrays;
  std::string damage() const;

  const Subject& subject_;
  bool grown_;
  std::unique_ptr<Arrays> arrays_;
};

// All of it: uploads, runs, fetches.
LossResult compute(const Subject& subject, void* instance, const LossCase& batch, const LossUse& use,
                   const CallOptions& options = {}, bool grown = false);

}  // namespace hexad::verify
