// The comparison with plain autograd can fail: each of these faults is noticed.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

struct DoneWork : c10d::Work {
  bool wait(std::chrono::milliseconds) override { return true; }
};

// Forwards to the real group; one collective goes wrong.
class BrokenGroup : public c10d::ProcessGroup {
 public:
  BrokenGroup(c10d::ProcessGroup* real, std::string fault)
      : c10d::ProcessGroup(real->getRank(), real->getSize()), real_(real), fault_(std::move(fault)) {}

  using Work = c10::intrusive_ptr<c10d::Work>;
  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    // Losses of the reduction of matrices alone: norms and metrics still agree between ranks.
    if (fault_ == "no all-reduce" && tensors[0].dim() == 2) return c10::make_intrusive<DoneWork>();
    return real_->allreduce(tensors, options);
  }
  Work _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    if (fault_ == "no reduce-scatter") {
      out.copy_(in.view({getSize(), -1})[getRank()]);
      return c10::make_intrusive<DoneWork>();
    }
    real_->_reduce_scatter_base(out, in, options)->wait();
    if (fault_ == "scaled reduce-scatter") out.mul_(getSize());
    return c10::make_intrusive<DoneWork>();
  }
  Work _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    return real_->_allgather_base(out, in, options);
  }
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override { return real_->send(tensors, to, tag); }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return real_->recv(tensors, from, tag); }

 private:
  c10d::ProcessGroup* real_;
  std::string fault_;
};

struct Mutation {
  const char* fault;
  const char* family;
  json sizes;
};

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all = {
      {"no all-reduce", "llama", {{"tensor_model_parallel_size", 2}}},     // of activations and their gradients
      {"no all-reduce", "qwen3", {{"pipeline_model_parallel_size", 2}}},   // of the tied embedding's gradient
      {"no reduce-scatter", "llama", json::object()},                      // of data-parallel gradients
      {"scaled reduce-scatter", "llama", json::object()},                  // an average that should be a sum
      {"scaled reduce-scatter", "llama", {{"context_parallel_size", 2}}},  // a factor of the context-parallel ranks
      {"no reduce-scatter", "llama", {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}}}};
  return all;
}

void broken(const Rank& rank) {
  start_runtime(rank);
  const Mutation& mutation = mutations().at(std::stoul(rank.argument));
  std::vector<c10::intrusive_ptr<BrokenGroup>> kept;
  wrap_group() = [&](void* real) {
    kept.push_back(c10::make_intrusive<BrokenGroup>(static_cast<c10d::ProcessGroup*>(real), mutation.fault));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
  const Errors errors = three_steps(megatron_model(mutation.family), {2, false, false},
                                    [&](const auto& dir) { return megatron_policy(dir, mutation.sizes); });
  CHECK(errors.grad > 1e-2);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"broken", broken}});

}  // namespace

TEST_CASE("the comparison notices reductions that are dropped or scaled") {
  for (size_t i = 0; i < mutations().size(); ++i) {
    INFO(mutations()[i].fault << ", " << mutations()[i].sizes.dump());
    rank_process::run("broken", 2, std::to_string(i));
  }
}
