#include "core/cluster/worker/check_facts.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/joined.hpp"

namespace hexad::cluster {
namespace {

using Texts = std::vector<std::string>;

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const Texts& values) { return joined(values); }

// The same outputs in any order.
bool agree(const Texts& a, const Texts& b) { return std::ranges::is_permutation(a, b); }
bool agree(int64_t a, int64_t b) { return a == b; }

// What one rank's backend says of itself.
class Described {
 public:
  Described(const Json& backend, int rank) : backend_(backend), rank_(rank) {}

  template <typename T>
  void compare(const char* field, const char* fact, const T& wanted) const {
    const T got = backend_.at(field).get<T>();
    if (agree(got, wanted)) return;
    fail(ErrorKind::plugin,
         "{} on rank {}: describe() says {} {}, and {} after the fact {} of its manifest: the plugin's author has to "
         "mend one of the two",
         backend_.at("name").get<std::string>(), rank_, field, text_of(got), text_of(wanted), fact);
  }

 private:
  const Json& backend_;
  int rank_;
};

}  // namespace

void check_facts(const std::vector<Json>& started, const RankRange& trainers, const config::RunFacts& facts) {
  for (int rank = trainers.first; rank < trainers.end(); ++rank) {
    const Described described(started.at(rank).at("backend"), rank);
    if (facts.copy_ranks && *facts.copy_ranks > 0)
      described.compare<int64_t>("dp_size", "copy_ranks", trainers.count / *facts.copy_ranks);
    if (facts.sequence_multiple)
      described.compare<int64_t>("sequence_multiple", "sequence_multiple", *facts.sequence_multiple);
    if (facts.micro_batch_multiple)
      described.compare<int64_t>("micro_batch_multiple", "micro_batch_multiple", *facts.micro_batch_multiple);
    if (facts.outputs) described.compare<Texts>("outputs", "outputs", *facts.outputs);
  }
}

}  // namespace hexad::cluster
