#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>

#include "lib/base/error.hpp"
#include "lib/text/template/chat_template.hpp"

using hexad::text::ChatTemplate;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

// A model directory that goes away with the test.
struct ModelDirectory {
  fs::path path = fs::temp_directory_path() / ("hexad_chat_template_" + std::to_string(::getpid()));
  ModelDirectory() { fs::create_directories(path); }
  ~ModelDirectory() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }
  std::string rendered(bool with_tools = false) const {
    return ChatTemplate::for_model(path, with_tools)->render(Json::array({{{"role", "user"}, {"content", "Hi"}}}));
  }
  std::string failure() const {
    try {
      return rendered();
    } catch (const hexad::Error& error) {
      return error.what();
    }
  }
};

}  // namespace

TEST_CASE("the template of a model directory") {
  const ModelDirectory model;
  CHECK(!ChatTemplate::for_model(model.path));
  model.write("tokenizer_config.json", R"({"eos_token": "x"})");
  CHECK(!ChatTemplate::for_model(model.path));
  model.write("tokenizer_config.json", R"({"chat_template": "plain {{ messages[0].content }}"})");
  CHECK(model.rendered() == "plain Hi");
  model.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "default", "template": "default"}, {"name": "tool_use", "template": "tools"}]})");
  CHECK(model.rendered() == "default");
  CHECK(model.rendered(true) == "tools");
  model.write("tokenizer_config.json", R"({"chat_template": {"default": "by name", "tool_use": "with tools"}})");
  CHECK(model.rendered() == "by name");
  CHECK(model.rendered(true) == "with tools");
  CHECK(ChatTemplate::named(model.path, "tool_use").has_value());
  CHECK_FALSE(ChatTemplate::named(model.path, "rag").has_value());
  model.write("chat_template.jinja", "file\n");
  CHECK(model.rendered() == "file");
  CHECK(model.rendered(true) == "file");
  fs::create_directories(model.path / "additional_chat_templates");
  model.write("additional_chat_templates/tool_use.jinja", "file of tools");
  CHECK(model.rendered() == "file");
  CHECK(model.rendered(true) == "file of tools");
}

TEST_CASE("files that hold no template are refused by name") {
  const ModelDirectory model;
  const std::string file = (model.path / "tokenizer_config.json").string();
  model.write("tokenizer_config.json", "{");
  CHECK(model.failure() == file + ": not a JSON object");
  model.write("tokenizer_config.json", R"({"chat_template": 5})");
  CHECK(model.failure() == file + ": \"chat_template\" must be text or a list of named templates, got number");
  model.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": ""}]})");
  CHECK(model.failure() ==
        model.path.string() +
            ": the model has chat templates of the names rag, and none named \"default\": choose one "
            "by its name");
  model.write("tokenizer_config.json", R"({"chat_template": {"rag": 5}})");
  CHECK(model.failure() == file + ": template \"rag\" of \"chat_template\" is number, want text");
  model.write("tokenizer_config.json", R"({"chat_template": [{"template": "x"}]})");
  CHECK(model.failure() == file + ": an entry of \"chat_template\" wants a text \"name\"");
  model.write("tokenizer_config.json", R"({"chat_template": "a\n{% if"})");
  CHECK(model.failure() == file + " (chat_template):2: {% is not closed by %}");
}
