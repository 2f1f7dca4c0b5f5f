// How often values were converted to FP8, by any thread of this process.
#pragma once
#include <ATen/record_function.h>

#include <atomic>

namespace backend_test {

// Counts on CPUs, whose casts are ATen's; kernels of GPUs convert without it. One at a time.
class Fp8Conversions {
 public:
  Fp8Conversions() : handle_(at::addGlobalCallback(callback())) { count_ = 0; }
  ~Fp8Conversions() { at::removeCallback(handle_); }
  Fp8Conversions(const Fp8Conversions&) = delete;

  int64_t count() const { return count_; }

 private:
  static void ended(const at::RecordFunction& call, at::ObserverContext*) {
    if (std::string_view(call.name()) != "aten::_to_copy") return;
    for (const c10::IValue& output : call.outputs())
      if (output.isTensor() && at::isFloat8Type(output.toTensor().scalar_type())) ++count_;
  }
  static at::RecordFunctionCallback callback() {
    const auto begun = [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> { return nullptr; };
    return at::RecordFunctionCallback(begun, &ended).needsOutputs(true).scopes({at::RecordScope::FUNCTION});
  }

  static inline std::atomic<int64_t> count_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace backend_test
