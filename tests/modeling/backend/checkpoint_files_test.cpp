// What a checkpoint takes from the model's folder beside the weights.
#include "modeling/backend/weight/checkpoint_files.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "modeling/error.hpp"
#include "tests/modeling/support/temporary_dir.hpp"

namespace hexad::modeling {
namespace {

namespace fs = std::filesystem;

ModelConfig small_llama() {
  return parse_model_config({{"model_type", "llama"},
                             {"vocab_size", 100},
                             {"hidden_size", 64},
                             {"num_hidden_layers", 4},
                             {"num_attention_heads", 8},
                             {"intermediate_size", 96},
                             {"hidden_act", "silu"}},
                            "config.json");
}

TEST_CASE("generation_config.json is copied, unless a link names it outside of the model's folder") {
  const TemporaryDir model, elsewhere, checkpoint;
  const fs::path copy = checkpoint / "generation_config.json";
  write_model_configs(small_llama(), model.path(), checkpoint.path());
  CHECK(fs::exists(checkpoint / "config.json"));
  CHECK_FALSE(fs::exists(copy));

  std::ofstream(elsewhere / "secret.json") << "{\"secret\": 1}";
  fs::create_symlink(elsewhere / "secret.json", model / "generation_config.json");
  write_model_configs(small_llama(), model.path(), checkpoint.path());
  CHECK_FALSE(fs::exists(copy));

  fs::remove(model / "generation_config.json");
  std::ofstream(model / "generation_config.json") << "{\"eos_token_id\": 2}";
  write_model_configs(small_llama(), model.path(), checkpoint.path());
  CHECK(fs::file_size(copy) == 19);
}

TEST_CASE("config.json goes through no link, and what keeps it from the disk is an error of modeling") {
  const TemporaryDir model, checkpoint;
  std::ofstream(model / "precious") << "precious";
  fs::create_symlink(model / "precious", checkpoint / ".config.json.partial");
  CHECK_THROWS_WITH_AS(write_model_configs(small_llama(), model.path(), checkpoint.path()),
                       doctest::Contains(".config.json.partial: cannot be written: it is a symbolic link"), Error);
  CHECK(fs::file_size(model / "precious") == 8);
}

}  // namespace
}  // namespace hexad::modeling
