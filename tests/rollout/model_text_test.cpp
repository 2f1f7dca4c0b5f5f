// What is said about a model directory whose text side is missing, damaged, or of another model.
#include "core/rollout/model_text.hpp"

#include "core/rollout/prompts.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using namespace hexad::rollout;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;

// A copy of the quickstart's model to damage.
struct Model {
  Model() { fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "model", fs::copy_options::recursive); }
  void edit(const std::string& file, const Json& changes) const {
    Json json = Json::parse(plugin_test::read_text(dir / "model" / file));
    json.merge_patch(changes);
    dir.write("model/" + file, json.dump());
  }
  ModelText load(const config::TokenizerConfig& config = {}) const { return load_model_text(dir / "model", config); }
  std::string error(const config::TokenizerConfig& config = {}) const {
    return error_of([&] { load(config); });
  }

  toy::TempDir dir;
};

config::TokenizerConfig named(const std::string& name) {
  config::TokenizerConfig config;
  config.name = name;
  return config;
}

}  // namespace

TEST_CASE("the text side of a model") {
  const Model model;
  model.dir.write("model/generation_config.json", R"({"eos_token_id": [2, 9]})");
  const ModelText text = model.load();
  CHECK(text.bos_token == "<question>");
  CHECK(text.eos_token == "<end>");
  CHECK(text.eos_ids == std::vector<int64_t>{2, 9});
  const data::TextTools tools = text.tools();
  CHECK(tools.encode("ab<answer>") == std::vector<int64_t>{4, 5, 3});
  const Json chat = Json::parse(R"([{"role": "user", "content": "ab"}])");
  CHECK(tools.render(chat, {true, Json()}) == "<question>ab<answer>");
  CHECK(tools.render(chat, {false, Json()}) == "<question>ab");
  config::TokenizerConfig plain;
  plain.chat_template.reset();
  CHECK(model.load(plain).tools().render(chat, {true, Json()}) == "ab");
  plain.chat_template = "{{ messages[0].content }}!";
  CHECK(model.load(plain).tools().render(chat, {true, Json()}) == "ab!");
}

TEST_CASE("rows with tools have the template of that name, and a name chooses one") {
  const Model model;
  model.edit("tokenizer_config.json",
             {{"unk_token", "<pad>"},
              {"chat_template", Json::parse(R"([{"name": "default", "template": "d{{ unk_token }}{{ eos_token }}"},
                                                {"name": "tool_use", "template": "{{ tools | length }} tools"}])")}});
  const Json chat = Json::parse(R"([{"role": "user", "content": "ab"}])"), tools = Json::parse(R"([{"name": "f"}])");
  const ModelText text = model.load();
  CHECK(text.tools().render(chat, {true, Json()}) == "d<pad><end>");
  CHECK(text.tools().render(chat, {true, tools}) == "1 tools");
  config::TokenizerConfig config;
  config.chat_template = "tool_use";
  CHECK(model.load(config).tools().render(chat, {true, Json::array()}) == "0 tools");
}

TEST_CASE("a tokenizer that disagrees with the model is refused") {
  const Model model;
  model.edit("config.json", {{"vocab_size", 10}});
  const std::string directory = (model.dir / "model").string();
  CHECK(model.error() ==
        fmt::format("{0}: the tokenizer has ids up to 11, the model's vocab_size is 10 ({0}/config.json). "
                    "They do not belong together: the model has no row for h",
                    directory));
  const Model other;  // the same through policy.tokenizer.name
  model.edit("config.json", {{"vocab_size", 12}});
  other.edit("config.json", {{"vocab_size", 5}});
  CHECK(contains(other.error(named(directory)),
                 directory + ": the tokenizer has ids up to 11, the model's vocab_size is 5"));
}

TEST_CASE("a vocabulary that is no number is refused by its file") {
  const Model model;
  model.edit("config.json", {{"vocab_size", "12"}});
  CHECK(model.error() == (model.dir / "model/config.json").string() + ": vocab_size is \"12\", want a whole number");
}

TEST_CASE("without a chat template messages are joined, and have to be text") {
  const Model model;
  config::TokenizerConfig plain;
  plain.chat_template.reset();
  const ModelText text = model.load(plain);
  const auto joined = [&](const char* messages) { return text.tools().render(Json::parse(messages), {}); };
  CHECK(joined(R"([{"role": "user", "content": "a"}, {"role": "user", "content": null}, {"role": "x"}])") == "a");
  CHECK(contains(error_of([&] { joined(R"([{"role": "user", "content": [{"type": "text", "text": "a"}]}])"); }),
                 "messages[0].content is array, want text: without a chat template"));
}

TEST_CASE("a vocabulary that the model pads is fine") {
  const Model model;
  model.edit("config.json", {{"vocab_size", 16}});
  CHECK(model.error() == "(no error)");
}

TEST_CASE("a tokenizer that is not there, or damaged") {
  const Model model;
  CHECK(model.error(named("/nowhere")) ==
        "policy.tokenizer.name: no directory '/nowhere'. Wanted: a directory with tokenizer.json; leave the key out to "
        "use the model's");
  CHECK(contains(model.error(named(std::string(300, 'x'))), "policy.tokenizer.name: no directory 'xxx"));
  CHECK(contains(model.error(named(model.dir.path().string())), "tokenizer.json"));
  const std::string whole = plugin_test::read_text(model.dir / "model/tokenizer.json");
  model.dir.write("model/tokenizer.json", whole.substr(0, whole.size() / 2));
  CHECK(contains(model.error(), "tokenizer.json"));
  model.dir.write("model/tokenizer.json", whole);
  model.dir.write("model/config.json", "[1]");
  CHECK(contains(model.error(), "config.json: not a JSON object"));
}

TEST_CASE("a chat template that cannot be read or parsed") {
  const Model model;
  config::TokenizerConfig config;
  config.chat_template = "/nowhere/x.jinja";
  CHECK(model.error(config) == "policy.tokenizer.chat_template: cannot read /nowhere/x.jinja");
  config.chat_template = std::string(300, 'x') + ".jinja";
  CHECK(contains(model.error(config), "policy.tokenizer.chat_template: cannot read xxx"));
  config.chat_template = "tool_uze";
  CHECK(model.error(config) ==
        fmt::format("policy.tokenizer.chat_template: 'tool_uze' is no template, and {} has none of this name. Wanted: "
                    "\"default\", null, a name of the model's, a *.jinja file or a template",
                    (model.dir / "model").string()));
  config.chat_template = "{% for %}";
  CHECK(contains(model.error(config), "policy.tokenizer.chat_template"));
}
