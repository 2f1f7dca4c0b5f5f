#include "core/cluster/worker/check_facts.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::cluster {
namespace {

using Texts = std::vector<std::string>;

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const Texts& values) { return joined(values); }

// The same outputs in any order.
bool agree(const Texts& a, const Texts& b) { return std::ranges::is_permutation(a, b); }
bool agree(int64_t a, int64_t b) { return a == b; }

template <typename T>
void compare(const protocol::BackendInfo& backend, int rank, const char* field, const T& got, const char* fact,
             const std::optional<T>& wanted) {
  if (!wanted || agree(got, *wanted)) return;
  fail(ErrorKind::plugin,
       "{} on rank {}: describe() says {} {}, and {} after the fact {} of its manifest: the plugin's author has to "
       "mend one of the two",
       backend.name, rank, field, text_of(got), text_of(*wanted), fact);
}

}  // namespace

void check_facts(const std::vector<protocol::Start::Reply>& started, const RankRange& trainers,
                 const config::RunFacts& facts) {
  std::optional<int64_t> copies;
  if (facts.copy_ranks && *facts.copy_ranks > 0) copies = trainers.count / *facts.copy_ranks;
  for (int rank = trainers.first; rank < trainers.end(); ++rank) {
    const protocol::BackendInfo& backend = started.at(rank).backend.value();
    const auto check = [&](const char* field, const auto& got, const char* fact, const auto& wanted) {
      compare(backend, rank, field, got, fact, wanted);
    };
    check("dp_size", backend.dp_size, "copy_ranks", copies);
    check("sequence_multiple", backend.sequence_multiple, "sequence_multiple", facts.sequence_multiple);
    check("micro_batch_multiple", backend.micro_batch_multiple, "micro_batch_multiple", facts.micro_batch_multiple);
    check("outputs", backend.outputs, "outputs", facts.outputs);
  }
}

}  // namespace hexad::cluster
