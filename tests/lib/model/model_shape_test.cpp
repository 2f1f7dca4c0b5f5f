#include "lib/model/model_shape.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/model/error.hpp"

using namespace hexad::model;
using Json = nlohmann::ordered_json;

namespace {

// A model's folder that holds `config` as config.json.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hexad_model_shape_" + std::to_string(::getpid()));
  explicit Folder(const std::string& config) {
    std::filesystem::create_directories(path);
    std::ofstream(path / "config.json") << config;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

// The effective user is nobody while it lives, where it was root.
class Unprivileged {
 public:
  Unprivileged() {
    if (user_ == 0) REQUIRE(::seteuid(65534) == 0);
  }
  ~Unprivileged() { CHECK(::seteuid(user_) == 0); }

 private:
  const uid_t user_ = ::geteuid();
};

}  // namespace

TEST_CASE("a dense model: heads, layers, widths, no experts") {
  const ModelShape shape = model_shape(
      {{"num_attention_heads", 8}, {"num_hidden_layers", 4}, {"intermediate_size", 64}, {"mlp_bias", true}});
  CHECK(shape.num_attention_heads == 8);
  CHECK(shape.num_key_value_heads == 8);  // as many where the file does not say
  CHECK(shape.num_layers == 4);
  CHECK(shape.intermediate_size == 64);
  CHECK(shape.linear_bias);
  CHECK_FALSE(shape.num_experts.has_value());
  CHECK_FALSE(shape.score_function.has_value());
  CHECK_FALSE(model_shape({{"num_experts", 0}}).num_experts.has_value());
}

TEST_CASE("a model with experts, under each family's names") {
  for (const char* name : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    INFO(name);
    const ModelShape shape = model_shape({{name, 16}, {"num_experts_per_tok", 2}, {"intermediate_size", 32}});
    CHECK(shape.num_experts == 16);
    CHECK(shape.experts_per_token == 2);
    CHECK(shape.moe_intermediate_size == 32);
    CHECK(shape.score_function == "softmax");
    CHECK_FALSE(shape.shared_experts);
  }
  const ModelShape deepseek = model_shape({{"model_type", "deepseek_v3"},
                                           {"n_routed_experts", 8},
                                           {"n_group", 4},
                                           {"topk_group", 2},
                                           {"n_shared_experts", 1},
                                           {"kv_lora_rank", 16},
                                           {"num_key_value_heads", 4}});
  CHECK(deepseek.score_function == "sigmoid");
  CHECK(deepseek.expert_groups == 4);
  CHECK(deepseek.groups_per_token == 2);
  CHECK(deepseek.shared_experts);
  CHECK(deepseek.latent_attention);
  CHECK_FALSE(deepseek.num_key_value_heads.has_value());
}

TEST_CASE("values of the wrong kind count as absent") {
  const ModelShape shape = model_shape({{"num_attention_heads", "8"}, {"num_hidden_layers", 1.5}, {"mlp_bias", 1}});
  CHECK_FALSE(shape.num_attention_heads.has_value());
  CHECK_FALSE(shape.num_layers.has_value());
  CHECK_FALSE(shape.linear_bias);
}

TEST_CASE("config.json is read with what overrides it") {
  const Folder folder(R"({"num_hidden_layers": 2, "num_attention_heads": 4})");
  CHECK(read_model_shape(folder.path, Json())->num_layers == 2);
  const auto shape = read_model_shape(folder.path, {{"num_hidden_layers", 6}, {"num_attention_heads", nullptr}});
  REQUIRE(shape.has_value());
  CHECK(shape->num_layers == 6);
  CHECK_FALSE(shape->num_attention_heads.has_value());
  CHECK_FALSE(read_model_shape(folder.path / "absent", Json()).has_value());
}

TEST_CASE("what is no JSON object, or nested without end, gives no shape") {
  const auto nested = [](int levels) {
    return R"({"num_hidden_layers": 2, "model_type": )" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  for (const std::string& text : {std::string("{"), std::string("[1]"), std::string(), nested(500), nested(100'000)}) {
    const Folder folder(text);
    CHECK_FALSE(read_model_shape(folder.path, Json()).has_value());
  }
  CHECK(read_model_shape(Folder(nested(499)).path, Json())->num_layers == 2);
}

TEST_CASE("a config.json that cannot be opened is named") {
  const Folder folder("{}");
  const std::filesystem::path file = folder.path / "config.json";
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const Unprivileged unprivileged;  // root may read everything
  CHECK_THROWS_WITH_AS(read_model_shape(folder.path, Json()),
                       (file.string() + ": cannot be opened: Permission denied").c_str(), Error);
}
