// Which data a checkpoint goes on with.
#include "core/algorithm/run/identity.hpp"

#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::Json;

namespace {

Json identity(int64_t size, int64_t looked_at, const std::string& fingerprint) {
  data::Contents contents;
  contents.size = size, contents.looked_at = looked_at, contents.fingerprint = fingerprint;
  return algorithm::identity_of({}, (toy::source_dir() / "configs/quickstart_model").string(), contents);
}

}  // namespace

TEST_CASE("of large data the number of rows is compared and what they begin with, of other data all of them") {
  const Json small = identity(10, 10, "a"), large = identity(10'000, 4'096, "b");
  CHECK(small.at("train_prompts") == 10);
  CHECK(small.at("data_contents") == "a");
  CHECK_FALSE(small.contains("data_begins"));
  CHECK(large.at("train_prompts") == 10'000);
  CHECK(large.at("data_begins") == "b");
  CHECK_FALSE(large.contains("data_contents"));
  for (const Json& one : {small, large}) CHECK(algorithm::comparable(one, one) == one);
}

TEST_CASE("what an earlier version saved of all rows of large data is not compared, and nothing else is left out") {
  Json earlier = identity(10'000, 10'000, "of all");
  const Json now = identity(10'000, 4'096, "of the first");
  CHECK(algorithm::comparable(now, earlier) == earlier);
  earlier["train_prompts"] = 9'999;
  CHECK(algorithm::comparable(now, earlier) != earlier);
  const Json small = identity(10, 10, "a");
  CHECK(algorithm::comparable(small, identity(10, 10, "other")) == small);
}
