// A rank that fails inside a schedule: the others' call ends in time, with the group and the rank that they miss.
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr int64_t kTimeoutMs = 3000;
constexpr double kDeadlineS = 12;  // the timeout, the question to the others, and a busy machine

// Forwards to the real group until rank 1 has begun `healthy` operations of training; then rank 1 fails.
class FailingGroup : public c10d::ProcessGroup {
 public:
  struct Plan {
    bool armed = false;
    int healthy = 2;
    std::string fault;
  };
  FailingGroup(c10d::ProcessGroup* real, Plan& plan)
      : c10d::ProcessGroup(real->getRank(), real->getSize()), real_(real), plan_(plan) {
    setDefaultBackend(real->getBackendType());
  }

  using Work = c10::intrusive_ptr<c10d::Work>;
  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override {
    fail();
    return real_->allreduce(tensors, options);
  }
  Work _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    fail();
    return real_->_reduce_scatter_base(out, in, options);
  }
  Work _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    fail();
    return real_->_allgather_base(out, in, options);
  }
  Work alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_sizes, std::vector<int64_t>& in_sizes,
                     const c10d::AllToAllOptions& options) override {
    fail();
    return real_->alltoall_base(out, in, out_sizes, in_sizes, options);
  }
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }
  Work send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    fail();
    return real_->send(tensors, to, tag);
  }
  Work recv(std::vector<at::Tensor>& tensors, int from, int tag) override { return real_->recv(tensors, from, tag); }

 private:
  void fail() {
    if (!plan_.armed || --plan_.healthy >= 0) return;
    if (plan_.fault == "kill") std::raise(SIGKILL);
    if (plan_.fault == "throw") TORCH_CHECK(false, "the rank was told to fail");
    if (plan_.fault == "hang") {
      std::this_thread::sleep_for(std::chrono::seconds(60));  // until it is killed
    }
  }
  c10d::ProcessGroup* real_;
  Plan& plan_;
};

struct Layout {
  const char* family;
  const char* group;  // that the other rank misses rank 1 in
  json sizes;
};

const std::vector<Layout>& layouts() {
  static const json interleaved = {{"pipeline_model_parallel_size", 2}, {"virtual_pipeline_model_parallel_size", 2}};
  static const std::vector<Layout> all = {{"llama", "pp", {{"pipeline_model_parallel_size", 2}}},
                                          {"llama", "pp", interleaved},
                                          {"llama", "tp", {{"tensor_model_parallel_size", 2}}},
                                          {"llama", "cp", {{"context_parallel_size", 2}}},
                                          {"qwen3_moe", "tp_ep", {{"expert_model_parallel_size", 2}}}};
  return all;
}

void fails(const Rank& rank) {
  runtime_test::start(rank, kTimeoutMs);
  const size_t space = rank.argument.find(' ');
  const Layout& layout = layouts().at(std::stoul(rank.argument.substr(0, space)));
  FailingGroup::Plan plan;
  plan.fault = rank.argument.substr(space + 1);
  std::vector<c10::intrusive_ptr<FailingGroup>> kept;
  wrap_group() = [&](void* real) -> void* {
    if (rank.rank != 1) return real;
    kept.push_back(c10::make_intrusive<FailingGroup>(static_cast<c10d::ProcessGroup*>(real), plan));
    return static_cast<c10d::ProcessGroup*>(kept.back().get());
  };
  const TemporaryDir folder;
  write_model(folder.path(), has_experts(layout.family) ? expert_model(layout.family) : megatron_model(layout.family));
  Instance backend(megatron_policy(folder.path(), layout.sizes));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const std::vector<Sequence> data = make_sequences(8, 0);
  auto batches = backend.batches(data, {1, false, false});
  plan.armed = true;
  double loss = 0;
  const auto began = std::chrono::steady_clock::now();
  const hexad_code code = backend.try_train(batches, 100, 1, 1, loss);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const std::string error = backend.error();
  CHECK(code != HEXAD_OK);
  if (rank.rank == 0) {
    INFO(seconds << " s: " << error);
    CHECK(seconds < kDeadlineS);
    CHECK(code == HEXAD_UNAVAILABLE);
    const auto has = [&](const std::string& text) { return error.find(text) != std::string::npos; };
    CHECK_MESSAGE(has(std::string(" over group '") + layout.group + "."), error);
    CHECK_MESSAGE(has("of ranks [0, 1] failed; missing: rank 1 ("), error);
    if (plan.fault == "kill") CHECK_MESSAGE(has("rank 1 (no answer: it ended, or was stopped)"), error);
    if (plan.fault == "hang") CHECK_MESSAGE(has("rank 1 (outside of collectives for "), error);
  } else {
    CHECK_MESSAGE(error.find("the rank was told to fail") != std::string::npos, error);
    // Alive until it is killed, as a worker that answers its controller is.
    std::fflush(nullptr);
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
  std::fflush(nullptr);
  ::_exit(0);  // the broken groups are not ended in order
}

const bool registered = add_scenarios({{"fails", fails}});

struct Run {
  size_t layout;
  std::string fault;
  std::filesystem::path dir = rank_process::temporary_dir();
  std::vector<rank_process::Child> children;

  Run(size_t layout, const std::string& fault) : layout(layout), fault(fault) {
    const int port = test_support::free_port();
    const std::string argument = std::to_string(layout) + " " + fault;
    for (int rank = 0; rank < 2; ++rank)
      children.push_back(rank_process::start("fails", {rank, 2, port, argument}, dir));
  }

  // The checks of rank 0, and then the end of rank 1, which needs not sleep on.
  void check() {
    std::vector<rank_process::Child> first = {children[0]}, second = {children[1]};
    rank_process::wait(first, std::chrono::seconds(120));
    ::kill(second[0].pid, SIGKILL);
    rank_process::wait(second, std::chrono::seconds(120));
    const std::string log = rank_process::text_of(first[0].log) + rank_process::text_of(second[0].log);
    INFO(layouts()[layout].sizes.dump() << ", " << fault << ": " << log);
    CHECK(first[0].status == 0);
    CHECK(second[0].status == 128 + SIGKILL);
    CHECK(log.find("ERROR") == std::string::npos);
    std::filesystem::remove_all(dir);
  }
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

// Two at a time: most of it is waiting.
TEST_CASE("a rank that throws, dies or hangs in a schedule: its peer ends in time and names group and rank") {
  if (test_device::is_gpu()) return test_device::leave_out("a rank that fails in a schedule", "as NCCL names no rank");
  const std::vector<std::pair<size_t, std::string>> faults = {{0, "throw"}, {0, "hang"},  {0, "kill"}, {2, "kill"},
                                                              {1, "hang"},  {3, "throw"}, {4, "hang"}};
  for (size_t i = 0; i < faults.size(); i += 2) {
    std::vector<Run> runs;
    for (size_t j = i; j < std::min(i + 2, faults.size()); ++j) runs.emplace_back(faults[j].first, faults[j].second);
    for (Run& run : runs) run.check();
  }
}

TEST_SUITE_END();
