#include "core/cluster/generation_requests.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using cluster::columns_of;
using cluster::join_columns;

namespace {

// A completion of two tokens after a prompt of three, with one column that the tests bend.
struct Sample {
  std::vector<int16_t> values = {0, 1, 2, 3, 4, 5, 6, 7, -1, -1};
  int64_t shape[2] = {5, 2};
  DLTensor tensor{values.data(), {kDLCPU, 0}, 2, {kDLInt, 16, 1}, shape, nullptr, 0};
  hexad_named_tensor column{"routed_experts", &tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
  hexad_completion completion{};

  Sample() {
    completion.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
    completion.id = 9;
    completion.count = 2;
    completion.columns = &column;
    completion.num_columns = 1;
  }
  std::string refused() const {
    try {
      columns_of("generator toy 1.0", completion, 3);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("columns of completions are copied and joined in order") {
  Sample first, second;
  second.values[0] = 40;
  const data::Batch one = columns_of("toy", first.completion, 3), two = columns_of("toy", second.completion, 3);
  first.values[0] = 99;  // the generator's own memory
  const data::Batch both = join_columns("toy", {one, two});
  CHECK(both.lengths() == std::vector<int64_t>{5, 5});
  CHECK(both.at("routed_experts").dtype() == data::DType::i16);
  CHECK(both.at("routed_experts").shape() == std::vector<int64_t>{10, 2});
  CHECK(both.row<int16_t>("routed_experts", 0)[0] == 0);
  CHECK(both.row<int16_t>("routed_experts", 1)[0] == 40);
  CHECK(both.row<int16_t>("routed_experts", 1)[9] == -1);
}

TEST_CASE("a generator of an earlier ABI has no columns") {
  Sample sample;
  sample.completion.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, error);
  const data::Batch none = columns_of("toy", sample.completion, 3);
  CHECK(none.columns().empty());
  CHECK(none.lengths() == std::vector<int64_t>{5});
}

TEST_CASE("a column that is not as the ABI has it is refused by name") {
  const std::string start = "generator toy 1.0: column 'routed_experts' of the completion of request 9: ";
  const auto refused = [&](const auto& bend) {
    Sample sample;
    bend(sample);
    return sample.refused();
  };
  CHECK(refused([](Sample& s) { s.column.name = nullptr; }) ==
        "generator toy 1.0: column '' of the completion of request 9: it has no name");
  const std::string axis = start + "wanted a tensor with the axis HEXAD_AXIS_TOKEN";
  CHECK(refused([](Sample& s) { s.column.axis = HEXAD_AXIS_SAMPLE; }) == axis);
  CHECK(refused([](Sample& s) { s.column.tensor = nullptr; }) == axis);
  CHECK(refused([](Sample& s) {
          s.tensor.dtype = {kDLFloat, 16, 1};
        }) == start + "got dtype code 2 of 16 bits, wanted f32, f64, i16, i32, i64 or u8");
  CHECK(refused([](Sample& s) { s.tensor.device = {kDLCUDA, 0}; }) == start + "wanted host memory");
  CHECK(refused([](Sample& s) { s.shape[0] = 2; }) ==
        start + "got shape [2, 2], wanted 5 tokens of prompt and completion first");
  CHECK(refused([](Sample& s) { s.shape[1] = -2; }) == start + "got shape [5, -2], wanted extents of 0 to 16777216");
  static int64_t strides[] = {1, 5};
  CHECK(refused([](Sample& s) { s.tensor.strides = strides; }) == start + "wanted a contiguous tensor");
  CHECK(refused([](Sample& s) { s.tensor.data = nullptr; }) == start + "wanted a contiguous tensor");
  static hexad_named_tensor two[2];
  CHECK(refused([](Sample& s) {
          two[0] = two[1] = s.column;
          s.completion.columns = two, s.completion.num_columns = 2;
        }) == start + "there are two of this name");
}

TEST_CASE("completions with other columns than the rest are refused") {
  Sample with, without;
  without.completion.num_columns = 0;
  const std::vector<data::Batch> parts = {columns_of("toy", with.completion, 3),
                                          columns_of("toy", without.completion, 3)};
  CHECK_THROWS_WITH_AS(join_columns("toy", parts), doctest::Contains("toy: the columns of its completions differ: "),
                       Error);
}
