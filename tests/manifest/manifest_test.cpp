#include "core/manifest/manifest.hpp"

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

Json good() {
  return {{"format", 1},
          {"kind", "loss"},
          {"name", "my_loss"},
          {"version", "1.0.0"},
          {"library", "libmy_loss.so"},
          {"abi", {{"major", 1}, {"min_host_minor", 0}}},
          {"arch", "x86_64-linux-gnu"},
          {"sha256", std::string(64, 'a')},
          {"size", 100},
          {"memory", {"host", "cuda"}},
          {"requires", {{"libtorch", "2.11.0"}}},
          {"license", "MIT"},
          {"verify_config", {"vocab_size=12", "server.command=[\"{dir}/server\"]"}},
          {"signature", "a later format may add keys"}};
}

std::string error_with(const Json& changes) {
  Json json = good();
  json.merge_patch(changes);
  return error_of([&] { parse_manifest(json.dump(), "m.json"); });
}

}  // namespace

TEST_CASE("a manifest is read whole") {
  const Manifest manifest = parse_manifest(good().dump(), "m.json");
  CHECK(manifest.kind == Kind::loss);
  CHECK(manifest.name == "my_loss");
  CHECK(manifest.library == "libmy_loss.so");
  CHECK(manifest.size == 100);
  CHECK(manifest.memory == std::vector<std::string>{"host", "cuda"});
  CHECK(manifest.requirements.at("libtorch") == "2.11.0");
  CHECK(manifest.verify_config == std::vector<std::string>{"vocab_size=12", "server.command=[\"{dir}/server\"]"});
}

TEST_CASE("a bad manifest is refused with the key at fault") {
  CHECK(error_with({{"format", 2}}) == "m.json: manifest format 2, this engine reads format 1");
  CHECK(error_with({{"kind", "reward"}}) == "m.json: kind 'reward' is none of backend, generator, loss, environment");
  CHECK(contains(error_with({{"name", "My-Loss"}}), "m.json: name 'My-Loss' must be 2 to 63 characters"));
  CHECK(error_with({{"name", nullptr}}) == "m.json: key 'name' is missing");
  CHECK(error_with({{"version", 1}}) == "m.json: 'version' must be a text, got 1");
  CHECK(contains(error_with({{"library", "../evil.so"}}), "must be a file name in the manifest's own directory"));
  CHECK(contains(error_with({{"library", ".."}}), "must be a file name"));
  CHECK(contains(error_with({{"sha256", "abc"}}), "m.json: sha256 must be 64 lower-case hex digits"));
  CHECK(contains(error_with({{"size", -1}}), "'size' must be a whole number, not negative, got -1"));
  CHECK(contains(error_with({{"size", 1e30}}), "'size' must be a whole number"));
  CHECK(contains(error_with({{"abi", 1}}), "must be a JSON object, got number"));
  CHECK(contains(error_with({{"memory", {"disk"}}}), "'memory' lists \"host\" and \"cuda\", got \"disk\""));
  CHECK(contains(error_with({{"requires", {{"cuda", 13}}}}), "requires.cuda must be a version text, got 13"));
  for (const Json& keys : {Json("vocab_size=12"), Json{"vocab_size"}, Json{"=12"}, Json{12}})
    CHECK(contains(error_with({{"verify_config", keys}}), "'verify_config' must be a list of KEY=VALUE texts, got "));
}

TEST_CASE("further plugins of a library have the manifest's facts, and none of its configuration") {
  Json json = good();
  json["also"] = {{{"kind", "loss"}, {"name", "other_loss"}}, {{"kind", "generator"}, {"name", "my_loss"}}};
  json["config"] = {{"keys", Json::object()}};
  const Manifest manifest = parse_manifest(json.dump(), "m.json");
  CHECK(manifest.also == std::vector<PluginName>{{Kind::loss, "other_loss"}, {Kind::generator, "my_loss"}});
  const Manifest other = manifest.of(manifest.also[1]);
  CHECK(other.plugin() == PluginName{Kind::generator, "my_loss"});
  CHECK(other.sha256 == manifest.sha256);
  CHECK(other.library == manifest.library);
  CHECK((other.config.empty() && other.verify_config.empty() && other.also.empty()));
  CHECK(error_with({{"also", "x"}}) == "m.json: 'also' must be a list of objects, got \"x\"");
  CHECK(error_with({{"also", {{{"kind", "loss"}}}}}) == "m.json: key 'name' is missing");
  CHECK(contains(error_with({{"also", {{{"kind", "lose"}, {"name", "a"}}}}}), "m.json: kind 'lose' is none of"));
  CHECK(error_with({{"also", {{{"kind", "loss"}, {"name", "my_loss"}}}}}) ==
        "m.json: 'also' names loss 'my_loss' a second time");
}

TEST_CASE("what the losses of a library need is a list for each of them") {
  Json json = good();
  json["inputs"] = {{"my_loss", {"logprobs", "advantages"}}, {"other_loss", Json::array()}};
  const Manifest manifest = parse_manifest(json.dump(), "m.json");
  CHECK(manifest.inputs.at("my_loss") == std::vector<std::string>{"logprobs", "advantages"});
  CHECK(manifest.inputs.at("other_loss").empty());
  for (const Json& wrong : {Json("logprobs"), Json{{"my_loss", "logprobs"}}, Json{{"my_loss", {1}}}})
    CHECK(contains(error_with({{"inputs", wrong}}), "m.json: 'inputs' must have a list of names for each loss, got "));
}

TEST_CASE("a manifest's size, depth and keys are bounded") {
  const auto error = [](const std::string& text) { return error_of([&] { parse_manifest(text, "m.json"); }); };
  CHECK(contains(error(""), "m.json: not JSON"));
  CHECK(contains(error("{\"format\": 1,"), "m.json: not JSON"));
  CHECK(contains(error("[]"), "must be a JSON object, got array"));
  CHECK(contains(error(std::string(262145, ' ')), "262145 bytes, a manifest has at most 262144"));
  CHECK(
      contains(error("{\"a\": " + std::string(20, '[') + std::string(20, ']') + "}"), "nested deeper than 16 levels"));
  CHECK(error("{\"format\": 1, \"format\": 1}") == "m.json: key 'format' stands twice in one object");
}

TEST_CASE("a manifest of a plugin that is not built has no digest, and says what builds it") {
  Json json = good();
  json.erase("sha256");
  json.erase("size");
  const Manifest manifest = parse_manifest(json.dump(), "m.json");
  CHECK(manifest.sha256.empty());
  CHECK(manifest.size == 0);
  CHECK(manifest.build == "make build");
  json["build"] = "make build PRESET=cuda";
  CHECK(parse_manifest(json.dump(), "m.json").build == "make build PRESET=cuda");
  CHECK(error_with({{"build", 1}}) == "m.json: 'build' must be a text, got 1");
  CHECK(error_with({{"sha256", nullptr}}) == "m.json: key 'sha256' is missing");  // half of a digest is none
  CHECK(error_with({{"size", nullptr}}) == "m.json: key 'size' is missing");
}

TEST_CASE("a manifest has room for the keys of a large plugin") {
  Json json = good();
  json["config"] = "# " + std::string(200000, 'k') + "\nkeys: {}\n";
  CHECK(Json::parse(parse_manifest(json.dump(), "m.json").config) == json["config"]);
}

TEST_CASE("no prefix of a manifest and no changed byte crashes the reader") {
  const std::string text = good().dump();
  for (size_t size = 0; size < text.size(); ++size)
    CHECK(error_of([&] { parse_manifest(text.substr(0, size), "m"); }) != "(no error)");
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char byte : {'\0', '"', '{', ']', '\xff', '9'}) {
      std::string changed = text;
      changed[i] = byte;
      error_of([&] { parse_manifest(changed, "m"); });
    }
  }
}

TEST_CASE("a manifest that is no file is refused") {
  CHECK(error_of([] { read_manifest("/nowhere/libx.hexad.json"); }) ==
        "/nowhere/libx.hexad.json: no manifest there (not a regular file)");
}
