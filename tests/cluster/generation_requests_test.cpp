#include "core/cluster/generation_requests.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;

namespace {

const cluster::protocol::Sampling sampling = {
    .top_p = 0.9, .min_p = 0.1, .top_k = 50, .stop_token_ids = {2}, .stop_strings = {"</s>"}};

data::Batch prompts() {
  data::Batch batch = data::Batch::of_lengths(std::vector<int64_t>{2, 1});
  batch.set("tokens", data::Tensor::of<int32_t>({5, 6, 7}), data::Axis::token);
  for (const char* column : {"group", "max_new_tokens", "seed"})
    batch.set(column, data::Tensor::of<int64_t>({3, 4}), data::Axis::sample);
  return batch;
}

}  // namespace

TEST_CASE("a batch of prompts becomes the generator's requests") {
  const cluster::protocol::Prompts given{.prompts = prompts(), .sampling = sampling};
  const auto made = cluster::make_requests(given);
  REQUIRE(made->requests.size() == 2);
  const hexad_request& second = made->requests[1];
  CHECK(second.id == 1);
  CHECK(second.prompt[0] == 7);
  CHECK(second.prompt_size == 1);
  CHECK(second.max_new_tokens == 4);
  CHECK(second.top_k == 50);
  CHECK(std::string(second.stop_strings[0]) == "</s>");
}

TEST_CASE("a column that is empty in width is refused, not read beyond its end") {
  data::Batch batch = prompts();
  batch.set("seed", data::Tensor(data::DType::i64, {2, 0}), data::Axis::sample);
  CHECK_THROWS_WITH_AS(cluster::make_requests({.prompts = batch, .sampling = sampling}),
                       "request 0: column 'seed' holds 0 numbers, wanted one", Error);
}
