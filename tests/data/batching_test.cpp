#include "core/data/batching.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "lib/base/error.hpp"
#include "tests/data/padded.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::data;
using golden::Json;
using Rows = std::vector<int64_t>;

namespace {

ShardOptions options_of(const Json& test_case) {
  const Json& config = test_case.at("config");
  ShardOptions options;
  options.shards = config.at("shards");
  options.allow_uneven_shards = config.at("allow_uneven_shards");
  if (!config.at("batch_size").is_null()) options.batch_size = config.at("batch_size").get<int64_t>();
  if (const Json& args = config.at("dynamic_batching_args"); !args.is_null()) {
    options.dynamic = {args.at("max_tokens_per_microbatch"), args.at("sequence_length_round")};
    options.max_width = test_case.at("inputs").at("padded_width").get<int64_t>();
  }
  if (const Json& args = config.at("sequence_packing_args"); !args.is_null()) {
    SequencePacking packing;
    packing.algorithm = packing_algorithm_named(args.at("algorithm").get<std::string>());
    packing.max_tokens_per_microbatch = args.at("max_tokens_per_microbatch");
    packing.sequence_length_pad_multiple = args.at("sequence_length_pad_multiple");
    packing.order = micro_batch_order_named(args.value("microbatch_order", "packer"));
    options.packing = packing;
  }
  return options;
}

void check_micro_batches(const Shard& got, const Json& want, const ShardOptions& options) {
  const auto indices = want.at("micro_batch_indices").get<std::vector<std::vector<std::pair<int64_t, int64_t>>>>();
  REQUIRE(got.global_batches.size() == indices.size());
  for (size_t batch = 0; batch < indices.size(); ++batch) {
    const auto& parts = got.global_batches[batch];
    REQUIRE(parts.size() == indices[batch].size());
    int64_t begin = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Json& iterated = want.at("micro_batches").at(batch).at(i);
      const int64_t count = static_cast<int64_t>(parts[i].rows.size());
      CHECK(indices[batch][i] == std::pair(begin, begin + count));
      CHECK(parts[i].length == want.at("micro_batch_lengths").at(batch).at(i));
      CHECK(parts[i].rows == iterated.at("sample_ids").get<Rows>());
      if (options.dynamic) CHECK(Rows{count, parts[i].length} == iterated.at("input_ids_shape").get<Rows>());
      begin += count;
    }
    if (!want.at("elem_counts_per_gb").is_null()) CHECK(begin == want.at("elem_counts_per_gb").at(batch));
  }
}

// NeMo-RL lists dynamically batched rows by global batch, then by rank; ours by rank, then by global batch.
Rows upstream_order(const Sharding& sharding, bool by_global_batch) {
  if (!by_global_batch) return sharding.order;
  Rows order;
  for (size_t batch = 0; batch < sharding.shards[0].global_batches.size(); ++batch) {
    for (const Shard& part : sharding.shards) {
      for (const MicroBatch& micro : part.global_batches[batch])
        order.insert(order.end(), micro.rows.begin(), micro.rows.end());
    }
  }
  return order;
}

void check_sharding(const Json& test_case) {
  const auto lengths = test_case.at("inputs").at("input_lengths").get<Rows>();
  const ShardOptions options = options_of(test_case);
  const Sharding got = shard(lengths, options);
  const Json& want = test_case.at("expected");
  REQUIRE(got.shards.size() == want.at("shards").size());
  for (size_t rank = 0; rank < got.shards.size(); ++rank) {
    const Json& share = want.at("shards").at(rank);
    CHECK(got.shards[rank].rows() == share.at("sample_ids").get<Rows>());
    if (!share.at("micro_batch_indices").is_null()) check_micro_batches(got.shards[rank], share, options);
  }
  if (want.contains("sorted_indices")) {
    const Rows order = upstream_order(got, options.dynamic.has_value());
    CHECK(order == want.at("sorted_indices").get<Rows>());
    Rows restored;
    for (int64_t position : inverse_permutation(order)) restored.push_back(got.order[position]);
    CHECK(restored == want.at("sample_ids_after_reorder_data").get<Rows>());
  }
  for (size_t row = 0; row < lengths.size(); ++row) CHECK(got.order[got.inverse[row]] == static_cast<int64_t>(row));
}

Batch batch_of(const Rows& ids) {
  Batch batch = Batch::of_lengths(Rows(ids.size(), 1));
  batch.set("sample_ids", Tensor::of(ids), Axis::sample);
  return batch;
}

Rows ids_of(const Batch& batch) {
  const auto ids = batch.at("sample_ids").span<int64_t>();
  return {ids.begin(), ids.end()};
}

Tensor tensor_of(const Json& value) {
  const golden::Tensor parsed = golden::tensor(value);
  Tensor result(DType::f64, parsed.shape);
  std::copy(parsed.data.begin(), parsed.data.end(), result.span<double>().begin());
  return result.to(dtype_named(parsed.dtype));
}

// Rows of width S become samples of length S.
void check_from_batches(const Json& test_case) {
  std::vector<Batch> parts;
  for (const Json& json : test_case.at("inputs").at("batches")) {
    std::optional<Batch> part;
    for (const auto& [name, value] : json.items()) {
      const Tensor tensor = tensor_of(value);
      if (tensor.dim() != 2) continue;
      if (!part) part = Batch::of_lengths(Rows(tensor.size(0), tensor.size(1)));
      part->set(name, pack_rows(tensor), Axis::token);
    }
    REQUIRE(part);
    for (const auto& [name, value] : json.items()) {
      if (tensor_of(value).dim() == 1) part->set(name, tensor_of(value), Axis::sample);
    }
    parts.push_back(*part);
  }
  const Batch joined = Batch::concat(parts);
  for (const auto& [name, value] : test_case.at("expected").items()) {
    const double pad = test_case.at("config").at("pad_value_dict").value(name, 0.0);
    const bool token = joined.column(name).axis == Axis::token;
    CHECK((token ? to_padded(joined, name, pad) : joined.at(name)) == tensor_of(value));
  }
}

void check_pieces(const Json& test_case) {
  const std::string kind = golden::prefix(test_case);
  const Json& config = test_case.at("config");
  const Json& expected = test_case.at("expected");
  const auto ids = test_case.at("inputs").at("sample_ids").get<Rows>();
  if (kind == "microbatch_iterator") {
    const std::vector<Rows> parts = split_rows(ids, config.at("microbatch_size"));
    CHECK(parts == expected.at("micro_batches").get<std::vector<Rows>>());
  } else if (kind == "chunk") {
    for (int64_t part = 0; part < config.at("chunks"); ++part) {
      CHECK(ids_of(chunk(batch_of(ids), part, config.at("chunks"))) == expected.at("chunks").at(part).get<Rows>());
    }
  } else {
    CHECK(ids_of(batch_of(ids).repeat_interleave(config.at("num_repeats"))) == expected.at("sample_ids").get<Rows>());
  }
}

void check_case(const Json& test_case) {
  const std::string kind = golden::prefix(test_case);
  if (test_case.at("config").contains("shards")) return check_sharding(test_case);
  if (kind == "from_batches") return check_from_batches(test_case);
  check_pieces(test_case);
}

// Rows of several sequences are laid out by backends (tests/modeling/layout), and ranks whose last batch is short get
// fewer rows, where NeMo-RL repeats one: pack_sequences and maybe_pad_last_batch have no counterpart here.
bool is_known(const Json& test_case) {
  static const std::set<std::string> kinds = {"plain",
                                              "uneven",
                                              "error",
                                              "dynamic",
                                              "packing",
                                              "from_batches",
                                              "chunk",
                                              "repeat_interleave",
                                              "microbatch_iterator"};
  return kinds.contains(golden::prefix(test_case));
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("batching") {
    golden::for_each_case(
        "batching",
        [](const Json& test_case) {
          if (test_case.at("expected").contains("error")) {
            CHECK_THROWS_AS(check_case(test_case), Error);
          } else {
            check_case(test_case);
          }
        },
        is_known);
  }
}

TEST_CASE("plain shards are cut into micro-batches of the size asked for") {
  const Rows lengths = {5, 2, 7, 1, 4, 4, 9, 3};
  const Sharding got = shard(lengths, {.shards = 2, .batch_size = 4, .micro_batch_size = 1});
  REQUIRE(got.shards.size() == 2);
  CHECK(got.shards[0].rows() == Rows{0, 1, 4, 5});
  CHECK(got.shards[1].global_batches[1][0].rows == Rows{6});
  CHECK(got.shards[1].global_batches[1][0].length == 9);
  CHECK_THROWS_WITH_AS(shard(lengths, {.shards = 2, .micro_batch_size = 3}),
                       doctest::Contains("4 rows are not a multiple of the micro-batch size 3"), Error);
}

TEST_CASE("sharding errors say what to change") {
  const Rows lengths = {5, 2, 7};
  CHECK_THROWS_WITH_AS(shard(lengths, {.shards = 2}), doctest::Contains("is not a multiple of 2 data-parallel ranks"),
                       Error);
  CHECK_THROWS_WITH_AS(shard(lengths, {.shards = 1, .dynamic = DynamicBatching{6, 4}}),
                       doctest::Contains("a sequence of 8 tokens (padded to a multiple of 4) exceeds"), Error);
}

TEST_CASE("an empty batch shards into empty shards") {
  const Sharding got = shard({}, {.shards = 2});
  CHECK(got.order.empty());
  CHECK(got.shards.size() == 2);
}
