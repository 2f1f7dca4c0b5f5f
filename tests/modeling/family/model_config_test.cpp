#include "modeling/family/model_config.hpp"

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace hexad::modeling {
namespace {

using nlohmann::json;
using Ids = std::vector<int64_t>;

TEST_CASE("load_model_config joins the eos ids of both files") {
  const TemporaryDir dir;
  CHECK_THROWS_WITH_AS(load_model_config(dir.path()),
                       ((dir / "config.json").string() + ": cannot be opened: No such file or directory").c_str(),
                       Error);
  write_file(dir / "config.json", json{{"model_type", "llama"},
                                       {"vocab_size", 100},
                                       {"hidden_size", 64},
                                       {"num_hidden_layers", 4},
                                       {"num_attention_heads", 8},
                                       {"intermediate_size", 96},
                                       {"eos_token_id", 5}}
                                      .dump());
  CHECK(load_model_config(dir.path()).eos_token_ids == Ids{5});
  write_file(dir / "generation_config.json", json{{"eos_token_id", {5, 9}}}.dump());
  CHECK(load_model_config(dir.path()).eos_token_ids == Ids{5, 9});
  write_file(dir / "config.json", "{");
  CHECK_THROWS_AS(load_model_config(dir.path()), Error);
}

}  // namespace
}  // namespace hexad::modeling
