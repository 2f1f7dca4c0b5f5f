// Which tokens of a micro-batch are computed once, and that a micro-batch is made of them.
#include "modeling/backend/shared_prefixes.hpp"

#include <doctest/doctest.h>

#include "modeling/backend/micro_batch.hpp"

namespace hexad::modeling {
namespace {

using Ints = std::vector<int64_t>;

TEST_CASE("tokens after the same tokens share a row") {
  //         a        b           none  c, within a    d, like a's middle
  const Ints ids = {5, 6, 7, 5, 6, 8, 9, 5, 6, 6, 7}, offsets = {0, 3, 7, 7, 9, 11};
  const SharedPrefixes shared = shared_prefixes(ids, offsets);
  CHECK(shared.row_of_token == Ints{0, 1, 2, 0, 1, 3, 4, 0, 1, 5, 6});
  CHECK(shared.first_token == Ints{0, 1, 2, 5, 6, 9, 10});
  CHECK(shared.parent == Ints{-1, 0, 1, 1, 3, -1, 5});
  CHECK(shared_prefixes({}, Ints{0}).first_token.empty());
}

struct Host {
  Ints ids, offsets, shape;
  DLTensor view{};
  hexad_named_tensor named{};
  hexad_batch batch{};

  Host(Ints tokens, Ints bounds) : ids(std::move(tokens)), offsets(std::move(bounds)), shape{int64_t(ids.size())} {
    view = {ids.data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, shape.data(), nullptr, 0};
    named = {"input_ids", &view, nullptr, HEXAD_AXIS_TOKEN, 0};
    batch.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
    batch.num_sequences = int64_t(offsets.size()) - 1, batch.num_tokens = shape[0];
    batch.cu_seqlens = offsets.data(), batch.tensors = &named, batch.num_tensors = 1;
  }
};

ModelConfig one_layer() {
  ModelConfig config;
  config.vocab_size = 20, config.num_layers = 1, config.head_dim = 4, config.sliding_window = {0};
  return config;
}

TEST_CASE("a micro-batch shares what its sequences begin with, where it is asked to and where it gains") {
  const Host alike({1, 2, 3, 4, 1, 2, 3, 5}, {0, 4, 8}), different({1, 2, 3, 4, 2, 2, 3, 5}, {0, 4, 8});
  BatchLayout share;
  share.share_prefixes = true;
  const MicroBatch batch = make_micro_batch(alike.batch, one_layer(), at::kCPU, share);
  CHECK(batch.tokens == 8);
  CHECK(batch.ids.equal(at::tensor(Ints{1, 2, 3, 4, 5})));
  CHECK(batch.targets.equal(at::tensor(Ints{-1, 2, 3, 4, 5})));
  CHECK(batch.token_rows.equal(at::tensor(Ints{0, 0, 1, 2, 2})));
  CHECK(batch.prediction_of_token.equal(at::tensor(Ints{1, 2, 3, 0, 1, 2, 4, 0})));
  CHECK(make_micro_batch(alike.batch, one_layer(), at::kCPU).ids.size(0) == 8);
  CHECK(make_micro_batch(different.batch, one_layer(), at::kCPU, share).ids.size(0) == 8);
}

}  // namespace
}  // namespace hexad::modeling
