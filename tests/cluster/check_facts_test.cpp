// What a backend says of itself once it is there, against the facts that its manifest gave before.
#include "core/cluster/process/start_workers.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using cluster::check_facts;
using cluster::protocol::BackendInfo;

namespace {

BackendInfo described() {
  BackendInfo backend;
  backend.name = "theirs";
  backend.dp_size = 2;
  backend.sequence_multiple = 8;
  backend.outputs = {"logprobs", "entropy"};
  return backend;
}

// Two ranks that generate behind four that train; one of these says something else of itself.
std::string said(const std::function<void(BackendInfo&)>& change, const config::RunFacts& facts) {
  std::vector<cluster::protocol::Start::Reply> started(6);
  for (int rank = 0; rank < 4; ++rank) started[rank].backend = described();
  change(*started[3].backend);
  try {
    check_facts(started, {0, 4}, facts);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::plugin);
    return error.what();
  }
  return "";
}

config::RunFacts facts() {
  config::RunFacts known;
  known.copy_ranks = 2;
  known.sequence_multiple = 8;
  known.micro_batch_multiple = 1;
  known.outputs = {"entropy", "logprobs"};
  return known;
}

const std::string kMend = " of its manifest: the plugin's author has to mend one of the two";

}  // namespace

TEST_CASE("a backend that is what its manifest says, or whose manifest says nothing, is taken") {
  CHECK(said([](BackendInfo&) {}, facts()) == "");
  const auto change = [](BackendInfo& backend) {
    backend.dp_size = 4, backend.sequence_multiple = 3, backend.micro_batch_multiple = 2, backend.outputs = {"values"};
  };
  CHECK(said(change, {}) == "");
}

TEST_CASE("a backend that contradicts a fact of its manifest ends the run, which names the fact") {
  CHECK(said([](BackendInfo& backend) { backend.dp_size = 4; }, facts()) ==
        "theirs on rank 3: describe() says dp_size 4, and 2 after the fact copy_ranks" + kMend);
  CHECK(said([](BackendInfo& backend) { backend.sequence_multiple = 4; }, facts()) ==
        "theirs on rank 3: describe() says sequence_multiple 4, and 8 after the fact sequence_multiple" + kMend);
  CHECK(said([](BackendInfo& backend) { backend.micro_batch_multiple = 2; }, facts()) ==
        "theirs on rank 3: describe() says micro_batch_multiple 2, and 1 after the fact micro_batch_multiple" + kMend);
  CHECK(said([](BackendInfo& backend) { backend.outputs = {"logprobs"}; }, facts()) ==
        "theirs on rank 3: describe() says outputs logprobs, and entropy, logprobs after the fact outputs" + kMend);
}
