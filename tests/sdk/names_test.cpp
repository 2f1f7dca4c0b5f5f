// NAMES.md and hexad/names.hpp are one table, and what it does with names that are not in it.
#include <doctest/doctest.h>

#include <hexad/names.hpp>

#include "tests/sdk/sdk.hpp"

using namespace hexad::sdk;

namespace {

std::string row_of(const KnownTensor& tensor) {
  const char* kind = tensor.dtype.code == kDLFloat ? "f" : tensor.dtype.code == kDLInt ? "i" : "u";
  const char* shape = tensor.axis == HEXAD_AXIS_SAMPLE ? "[B]" : tensor.meaning[0] == '[' ? "[T, ...]" : "[T]";
  const char* by = tensor.source == Source::backend  ? "backend"
                   : tensor.source == Source::engine ? "engine"
                                                     : "generator";
  std::string algorithms(tensor.algorithms.empty() ? "none yet" : tensor.algorithms);
  for (size_t at = 0; !tensor.algorithms.empty() && (at = algorithms.find(' ', at)) != algorithms.npos; at += 2)
    algorithms.replace(at, 1, ", ");
  return fmt::format("| `{}` | {}{} {} | {} | {} | {} |\n", tensor.name, kind, int{tensor.dtype.bits}, shape, by,
                     algorithms, tensor.meaning);
}

}  // namespace

TEST_CASE("NAMES.md has a row for every tensor of names.hpp, and no other") {
  const std::string page = toy::read_text(sdk_test::prefix() / "share/doc/hexad-sdk/NAMES.md");
  std::string rows;
  for (const KnownTensor& tensor : kKnownTensors) rows += row_of(tensor);
  CHECK_MESSAGE(page.find("|---|---|---|---|---|\n" + rows + "\n") != page.npos, rows);
}

TEST_CASE("a misspelt name has the known one beside it") {
  CHECK(nearest_name("prev_logprob") == "prev_logprobs");    // a letter too few
  CHECK(nearest_name("prev_loggprobs") == "prev_logprobs");  // too many
  CHECK(nearest_name("adwantages") == "advantages");         // another
  CHECK(nearest_name("prompt_lengths") == "prompt_length");
  CHECK(nearest_name("logprobs_filtered") == "logprobs");  // begins with one
  CHECK(nearest_name("temperature") == "");
  CHECK(nearest_name("x") == "");
  CHECK(meant_name("reward") == ", did you mean 'rewards'?");
  CHECK(is_own_name("x_teacher"));
  for (const char* name : {"x_", "x", "teacher", ""}) CHECK_FALSE(is_own_name(name));
  CHECK(known_tensor("rewards")->is_of("grpo"));
  CHECK_FALSE(known_tensor("rewards")->is_of("sft"));
  CHECK_FALSE(known_tensor("values")->is_of("grpo"));
}
