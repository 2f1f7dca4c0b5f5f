#include "core/data/packing/pack_layout.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "core/data/packing/packed_rows.hpp"
#include "core/data/padding.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::data;
using golden::Json;
using Rows = std::vector<int64_t>;

namespace {

std::vector<int64_t> integers(const Json& tensor) { return tensor.at("data").get<std::vector<int64_t>>(); }

Tensor tensor_of(const Json& value) { return Tensor::of<int64_t>(value.at("shape").get<Rows>(), integers(value)); }

Rows values(const Tensor& tensor) {
  const auto span = tensor.span<int64_t>();
  return {span.begin(), span.end()};
}

void check_packed_rows(const Json& test_case) {
  const Json& config = test_case.at("config");
  const Json& want = test_case.at("expected");
  const PackedRows got = pack_into_rows(
      tensor_of(test_case.at("inputs").at("input_ids")), integers(test_case.at("inputs").at("input_lengths")),
      config.at("packed_sequence_size").get<Rows>(), config.at("padding_value"), config.at("min_seq_len"));
  CHECK(got.input_ids == tensor_of(want.at("input_ids_packed")));
  CHECK(got.position_ids == tensor_of(want.at("position_ids_packed")));
  CHECK(got.attention_mask.shape() == want.at("attention_mask").at("shape").get<Rows>());
  CHECK(values(got.attention_mask.to(DType::i64)) == integers(want.at("attention_mask")));
  CHECK(got.cu_seqlens == integers(want.at("flash_attention").at("cu_seqlens_q")));
  CHECK(got.max_seqlen == want.at("flash_attention").at("max_seqlen_q"));
}

PackAlignment alignment_of(const Json& config) {
  const Json& megatron = config.at("megatron_cfg");
  PackParallelism parallelism;
  parallelism.tensor_parallel = megatron.at("tensor_model_parallel_size");
  parallelism.sequence_parallel = megatron.at("sequence_parallel");
  parallelism.pipeline_parallel = megatron.at("pipeline_model_parallel_size");
  parallelism.context_parallel = megatron.at("context_parallel_size");
  if (megatron.contains("fp8_cfg") && !megatron.at("fp8_cfg").is_null() &&
      megatron.at("fp8_cfg").value("enabled", false)) {
    parallelism.fp8_recipe = megatron.at("fp8_cfg").at("fp8_recipe").get<std::string>();
  }
  return pack_alignment(parallelism, config.at("make_sequence_length_divisible_by"), config.at("max_seq_len_in_batch"));
}

void check_megatron(const Json& test_case) {
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(alignment_of(test_case.at("config")), Error);
    return;
  }
  const PackAlignment alignment = alignment_of(test_case.at("config"));
  CHECK(alignment.sequence_multiple == want.at("pad_individual_seqs_to_multiple_of"));
  CHECK(alignment.total_multiple == want.at("pad_packed_seq_to_multiple_of"));
  CHECK((alignment.total ? Json(*alignment.total) : Json()) == want.at("pad_packed_seq_to"));

  const Rows lengths = integers(test_case.at("inputs").at("seq_lengths"));
  const PackLayout layout = pack_layout(lengths, alignment);
  CHECK(Rows(layout.cu_seqlens.begin(), layout.cu_seqlens.end()) == integers(want.at("cu_seqlens")));
  CHECK(Rows(layout.cu_seqlens_padded.begin(), layout.cu_seqlens_padded.end()) ==
        integers(want.at("cu_seqlens_padded")));
  CHECK(layout.max_seqlen == want.at("max_seqlen"));
  const Tensor row = lay_out(pack_rows(tensor_of(test_case.at("inputs").at("input_ids")), lengths), layout, 0);
  CHECK(values(row) == integers(want.at("all_input_ids")));
  const int64_t ranks = static_cast<int64_t>(want.at("ranks").size());
  for (const Json& rank : want.at("ranks")) {
    CHECK(values(context_parallel_slice(row, layout, rank.at("cp_rank"), ranks)) ==
          integers(rank.at("packed_input_ids")));
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("batching: packed rows") {
    golden::for_each_case("batching", check_packed_rows,
                          [](const Json& test_case) { return golden::prefix(test_case) == "pack_sequences"; });
  }
  TEST_CASE("batching: packs for context parallelism") {
    golden::for_each_case("batching", check_megatron,
                          [](const Json& test_case) { return golden::prefix(test_case) == "megatron_packed"; });
  }
}

TEST_CASE("alignment errors say the multiple that is missing") {
  PackParallelism parallelism;
  parallelism.context_parallel = 2;
  parallelism.tensor_parallel = 2;
  parallelism.sequence_parallel = true;
  CHECK_THROWS_WITH_AS(pack_alignment(parallelism, 4, 64), doctest::Contains("is 4 but must be a multiple of 8"),
                       Error);
  CHECK_THROWS_WITH_AS(pack_layout(Rows{5, 9}, {.total = 12}),
                       doctest::Contains("14 tokens (padded) does not fit the row of 12"), Error);
}
