#include "sdk/verify/case/backend_case.hpp"

#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <thread>

#include "sdk/verify/instance.hpp"
#include "sdk/verify/thread_group.hpp"

namespace hexad::verify {
namespace {

constexpr double kRate = 1e-2, kSums = 1e-4;  // relative, of gradients over ranks
constexpr int kMostServices = 40;

// What one rank did in a step.
struct Outcome {
  hexad_code code = HEXAD_OK;  // of train, else of step
  std::string text;
  double norm = 0;
};

Outcome train_and_step(const Subject& subject, void* self, const std::vector<TokenBatch>& batches, double gradient) {
  const BackendResult trained = train(subject, self, batches, gradient);
  if (trained.code != HEXAD_OK) return {trained.code, trained.text, 0};
  const BackendResult stepped = step(subject, self, kRate);
  return {stepped.code, stepped.text, stepped.grad_norm};
}

class Ranks {
 public:
  Ranks(const Subject& subject, Findings& findings) : findings_(findings) {
    for (int rank = 0; rank < ThreadGroup::kRanks; ++rank) {
      engines_[rank].emplace(*subject.engine, group_, rank);
      subjects_[rank] = subject;
      subjects_[rank].engine = &*engines_[rank];
    }
  }

  // Every service of communication that create uses fails in turn.
  void create_with_faults() {
    for (int n = 1; n <= kMostServices; ++n) {
      group_.fail_at(n);
      each([&](int rank) { instances_[rank].emplace(subjects_[rank], engines_[rank]->host()); });
      const bool tripped = group_.tripped();
      group_.fail_at(0);
      bool refused = true;
      for (const auto& instance : instances_) refused = refused && !*instance;
      destroy();
      if (!tripped) return;
      findings_.expect(
          refused, "error swallowed",
          "create, when service of communication " + std::to_string(n) + " fails on all ranks, returns HEXAD_OK");
      if (!refused) return;
    }
  }

  // False if this backend does not run on two ranks of these groups.
  bool create() {
    each([&](int rank) { instances_[rank].emplace(subjects_[rank], engines_[rank]->host()); });
    for (const auto& instance : instances_) {
      if (*instance) continue;
      findings_.expect(instance->error().size() > std::string("create failed: ").size(), "error text",
                       "create refuses a group of two ranks without a text");
      return false;
    }
    std::atomic<bool> parallel = true;
    each([&](int rank) {
      if (!describe(rank)) parallel = false;
    });
    return parallel;
  }

  std::vector<Outcome> step_all(const TokenBatch (&batches)[ThreadGroup::kRanks], double gradient) {
    std::vector<Outcome> outcomes(ThreadGroup::kRanks);
    each([&](int rank) {
      outcomes[rank] = train_and_step(subjects_[rank], instances_[rank]->self(), {batches[rank]}, gradient);
    });
    return outcomes;
  }
  void destroy() {
    each([&](int rank) { instances_[rank].reset(); });
  }
  ThreadGroup& group() { return group_; }

 private:
  // Runs `work` for every rank, on threads of their own, to their end.
  void each(const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ThreadGroup::kRanks; ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  }

  bool describe(int rank) {
    hexad_backend_info info{};
    info.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
    const auto call = engines_[rank]->call({});
    const auto* vtable = subjects_[rank].desc->backend;
    const hexad_code code =
        vtable->describe(static_cast<hexad_backend*>(instances_[rank]->self()), call->handle(), &info);
    return code == HEXAD_OK && info.dp_size == ThreadGroup::kRanks && info.dp_rank == rank;
  }

  Findings& findings_;
  ThreadGroup group_;
  std::optional<RankEngine> engines_[ThreadGroup::kRanks];
  Subject subjects_[ThreadGroup::kRanks];
  std::optional<Instance> instances_[ThreadGroup::kRanks];
};

bool close(double a, double b) { return std::abs(a - b) <= kSums * std::abs(b); }

}  // namespace

void check_group(const Subject& subject, Findings& findings) {
  const TokenBatch batches[] = {make_tokens({5, 3}, 24), make_tokens({9}, 25)};
  const double gradient = -1.0 / static_cast<double>(batches[0].ids.size() + batches[1].ids.size());
  const Instance alone(subject, subject.engine->host());
  if (!alone) return;
  const auto wanted = [&] { return train_and_step(subject, alone.self(), {batches[0], batches[1]}, gradient); };

  Ranks ranks(subject, findings);
  ranks.create_with_faults();
  if (!ranks.create()) return;
  const auto same = [&](const std::vector<Outcome>& outcomes, const Outcome& expected, const std::string& check,
                        const std::string& when) {
    for (const Outcome& outcome : outcomes) {
      if (!findings.expect(outcome.code == HEXAD_OK, check, when + "a rank of two fails: " + outcome.text)) return;
      findings.expect(close(outcome.norm, expected.norm), check,
                      when + "the gradient's norm on a rank of two is " + std::to_string(outcome.norm) +
                          ", one rank with all micro-batches has " + std::to_string(expected.norm));
    }
  };
  same(ranks.step_all(batches, gradient), wanted(), "gradient over ranks", "");
  for (int n = 1; n <= kMostServices; ++n) {
    ranks.group().fail_at(n);
    const std::vector<Outcome> failed = ranks.step_all(batches, gradient);
    const bool tripped = ranks.group().tripped();
    ranks.group().fail_at(0);
    if (!tripped) break;
    const std::string where = "when service of communication " + std::to_string(n) + " of a step fails on all ranks, ";
    bool refused = true;
    for (const Outcome& outcome : failed) {
      refused =
          findings.expect(outcome.code != HEXAD_OK, "error swallowed", where + "train and step return HEXAD_OK") &&
          refused;
      findings.expect(outcome.code == HEXAD_OK || !outcome.text.empty(), "error text", where + "there is no text");
    }
    if (!refused) break;
    same(ranks.step_all(batches, gradient), wanted(), "usable after an error", where + "and then ");
  }
  ranks.destroy();
}

}  // namespace hexad::verify
