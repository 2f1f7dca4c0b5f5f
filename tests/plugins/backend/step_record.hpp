// What two training steps of a backend did on this rank: numbers, operators, messages and bytes, as one text.
#pragma once
#include <ATen/record_function.h>

#include <fmt/format.h>

#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/plugins/backend/broken_group.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

// Lines in the order of time, of one recording at a time. Operators and messages of other threads are not in it.
inline std::vector<std::string>*& step_lines() {
  static thread_local std::vector<std::string>* lines = nullptr;
  return lines;
}

inline void note_step(const std::string& line) {
  if (step_lines()) step_lines()->push_back(line);
}

inline std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ","));
}

// A group that notes its messages.
class NotedGroup : public BrokenGroup {
 public:
  NotedGroup(c10d::ProcessGroup* real, std::string name) : BrokenGroup(real, ""), name_(std::move(name)) {}

  Done allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    return note("all-reduce", tensors[0]), BrokenGroup::allreduce(tensors, options);
  }
  Done _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    return note("reduce-scatter", in), BrokenGroup::_reduce_scatter_base(out, in, options);
  }
  Done alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                     const c10d::AllToAllOptions& options) override {
    return note("all-to-all", in), BrokenGroup::alltoall_base(out, in, out_sizes, in_sizes, options);
  }
  Done _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    return note("all-gather", in), BrokenGroup::_allgather_base(out, in, options);
  }
  Done broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return note("broadcast", tensors[0]), BrokenGroup::broadcast(tensors, options);
  }
  Done send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    return note("send", tensors[0]), BrokenGroup::send(tensors, to, tag);
  }
  Done recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return note("recv", tensors[0]), BrokenGroup::recv(tensors, from, tag);
  }

 private:
  void note(const char* what, const at::Tensor& tensor) const {
    note_step(fmt::format("{} {} of {} {}", name_, what, getSize(), shape_of(tensor)));
  }
  std::string name_;
};

// Notes ATen's operators while it lives.
class NotedOperators {
 public:
  NotedOperators()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(&note).scopes(
            {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}
  ~NotedOperators() { at::removeCallback(handle_); }
  NotedOperators(const NotedOperators&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& function) {
    // Autograd adds in place where nobody else holds the sum: a message under way may.
    const std::string name = function.name();
    note_step(name.ends_with("_") ? name.substr(0, name.size() - 1) : name);
    return nullptr;
  }
  at::CallbackHandle handle_;
};

inline std::string numbers_of(const Weights& weights) {
  std::string text;
  for (const auto& [name, weight] : weights)
    text += fmt::format("{} {:a}\n", name, weight.to(at::kDouble).mul(weight.to(at::kDouble)).sum().item<double>());
  return text;
}

// Two steps of the backend that `policy` describes; the rate is the step's, weight decay the optimizer's own. A policy
// that it refuses: "refused: " and the error.
inline std::string recorded_steps(const json& policy, const std::string& plugin, const Packing& packing) {
  std::vector<c10::intrusive_ptr<NotedGroup>> kept;
  wrap_group() = [&](void* native) {
    auto* const real = static_cast<c10d::ProcessGroup*>(native);
    kept.push_back(c10::make_intrusive<NotedGroup>(
        real, group_name().substr(0, group_name().find("."))));  // the rest counts instances
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
  std::vector<std::string> lines;
  step_lines() = &lines;
  {
    Instance backend(policy, plugin);
    if (backend.code() != HEXAD_OK) return "refused: " + backend.error();
    const hexad_backend_info& info = backend.info();
    note_step(fmt::format("rank {} of {}, tp {} pp {} cp {} ep {}, multiples {} {}", info.dp_rank, info.dp_size,
                          info.tp_size, info.pp_size, info.cp_size, info.ep_size, info.sequence_multiple,
                          info.micro_batch_multiple));
    for (int i = 0; i < 2; ++i) {
      auto batches = backend.batches(make_sequences(11, i), packing);
      const hexad::modeling::AllocatedBytes bytes;
      double loss = 0;
      {
        const NotedOperators noted;
        loss = backend.train(batches, 100, 1);
      }
      // Of several ranks it goes by when messages arrive.
      note_step(fmt::format("loss {:a}, at most {} bytes", loss, kept.empty() ? bytes.peak() : 0));
      const hexad_step_stats stats = backend.step(1e-2, std::nan(""), 0);
      note_step(fmt::format("norm {:a}", stats.grad_norm));
      note_step(numbers_of(backend.weights(HEXAD_WEIGHTS_CURRENT)));
    }
    const hexad_memory_stats memory = backend.memory();
    note_step(fmt::format("bytes of parameters {}, gradients {}, optimizer {}", memory.parameter_bytes,
                          memory.gradient_bytes, memory.optimizer_bytes));
    for (const auto& [name, value] : reported()) note_step(fmt::format("{} {:a}", name, value));
  }
  step_lines() = nullptr;
  reported().clear();
  wrap_group() = nullptr;
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace backend_test
