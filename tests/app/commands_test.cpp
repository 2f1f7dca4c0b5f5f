// The other commands of the program: what they print, and their exit codes.
#include <doctest/doctest.h>

#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::TempDir;

namespace {

std::string model() { return (toy::source_dir() / "configs/quickstart_model").string(); }

// The program's end, with what it said where a check fails.
Ended ends(int code, const std::vector<std::string>& arguments, const std::string& says = "") {
  Ended run = toy::run(arguments);
  INFO("hexad " << fmt::format("{}", fmt::join(arguments, " ")));
  CHECK(run.code == code);
  const std::string& text = code == 0 ? run.out : run.err;
  CHECK_MESSAGE(contains(text, says), "got: " << run.out << run.err << "\nwanted: " << says);
  return run;
}

}  // namespace

TEST_CASE("help and wrong usage") {
  const Ended help = ends(0, {"--help"}, "chosen in YAML");
  for (const char* command : {"train", "config", "plugin", "generate", "chat", "score", "tokenize", "convert", "report",
                              "checkpoint", "doctor", "setup"}) {
    CHECK_MESSAGE(contains(help.out, command), command);
  }
  CHECK_FALSE(contains(help.out, "worker"));
  ends(0, {"train", "--help"}, "key=value");
  ends(0, {"--version"});
  ends(2, {}, "A subcommand is required");
  ends(2, {"trian"}, "trian");
  ends(2, {"train"}, "CONFIG is required");
  ends(2, {"config"}, "A subcommand is required");
  ends(2, {"train", "x.yaml", "--no-such-flag"}, "--no-such-flag");
}

TEST_CASE("a mistyped command is answered with the nearest one") {
  ends(2, {"trian", "x.yaml"}, "unknown command 'trian'; did you mean 'train'?");
  ends(2, {"plugin", "lsit"}, "unknown command 'plugin lsit'; did you mean 'plugin list'?");
  ends(2, {"frobnicate"}, "unknown command 'frobnicate'; `hexad --help` lists the commands");
}

TEST_CASE("a worker is not for the command line") { ends(4, {"worker"}, "`hexad worker` is started by `hexad train`"); }

TEST_CASE("config check and show") {
  const TempDir dir;
  const std::string good = dir.write("good.yaml", toy::config_text(dir.path())).string();
  ends(0, {"config", "check", good}, "good.yaml: valid\n");
  CHECK(Json::parse(ends(0, {"config", "check", good, "--json"}).out).at("valid") == true);
  ends(2, {"config", "check", "/nowhere.yaml"});
  const Ended bad = toy::run({"config", "check", good, "grpo.seed=abc", "loss_fn.ratio_clip_min=-3"});
  CHECK(bad.code == 2);
  CHECK_MESSAGE(contains(bad.out, "grpo.seed"), bad.out);
  CHECK_MESSAGE(contains(bad.out, "not valid, 2 errors"), bad.out);
  const Ended json = toy::run({"config", "check", good, "grpo.seed=abc", "--json"});
  CHECK(json.code == 2);
  CHECK(Json::parse(json.out).at("errors").at(0).at("key") == "grpo.seed");

  dir.write("typo.yaml", "defaults: good.yaml\ngrpo:\n  num_promts_per_step: 3\n");
  const Ended typo = toy::run({"config", "check", (dir / "typo.yaml").string()});
  CHECK(typo.code == 2);
  CHECK_MESSAGE(contains(typo.out, "typo.yaml:3:"), typo.out);
  CHECK_MESSAGE(contains(typo.out, "did you mean grpo.num_prompts_per_step?"), typo.out);
  ends(2, {"train", (dir / "typo.yaml").string()}, "typo.yaml:3:");

  ends(0, {"config", "show", good, "grpo.seed=17"}, "seed: 17");
  const Json shown = Json::parse(ends(0, {"config", "show", good, "grpo.seed=17", "--json"}).out);
  CHECK(shown.at("grpo").at("seed") == 17);
  CHECK(shown.at("policy").at("make_sequence_length_divisible_by") == 1);  // defaults are filled in
  ends(2, {"config", "show", (dir / "typo.yaml").string()}, "num_promts_per_step");
}

TEST_CASE("config show --origin") {
  const TempDir dir;
  const std::string good = dir.write("good.yaml", toy::config_text(dir.path())).string();
  const Ended shown =
      ends(0, {"config", "show", "--origin", good, "grpo.seed=17"}, "\n  seed: 17  # override grpo.seed=17\n");
  CHECK_MESSAGE(contains(shown.out, "\n  num_prompts_per_step: 8  # " + good + ":2:"), shown.out);
  CHECK_MESSAGE(contains(shown.out, "\n  max_rollout_turns: 1  # default\n"), shown.out);
  const Json list = Json::parse(ends(0, {"config", "show", "--origin", "--json", good}).out);
  const auto first = std::ranges::find_if(list, [](const Json& leaf) { return leaf.at("key") == "grpo.seed"; });
  REQUIRE(first != list.end());
  CHECK(first->at("value") == 3);
  CHECK(contains(first->at("origin").get<std::string>(), good + ":10:"));
  ends(2, {"config", "check", "--origin", good}, "--origin");
}

TEST_CASE("plugin list and info") {
  const std::string path = toy::plugins().string();
  const Ended list = ends(0, {"plugin", "list", "--path", path}, "toy_backend");
  CHECK(contains(list.out, "searched:\n"));
  CHECK(contains(list.out, path + " (3 manifests)"));
  const Json json = Json::parse(ends(0, {"plugin", "list", "--path", path, "--json"}).out);
  CHECK(json.at("plugins").at(0).at("status") == "ok");
  ends(0, {"plugin", "info", "toy_generator", "--path", path}, "generator");
  ends(3, {"plugin", "info", "toy_genrator", "--path", path}, "toy_generator");
  ends(3, {"plugin", "info", "/nowhere/libx.so"}, "/nowhere/libx.so");
}

namespace {

// The manifest of a backend that is not built.
const char* const kProbe = R"({
  "format": 1, "kind": "backend", "name": "probe", "version": "1.0.0", "library": "libprobe.so",
  "abi": {"major": 1, "min_host_minor": 0}, "arch": "x86_64-linux-gnu", "build": "make build PRESET=cuda",
  "config": {"keys": {
    "probe_cfg": {"type": "map", "meaning": "the probe"},
    "probe_cfg.lr": {"type": "float", "default": {"first_of": ["optimizer.kwargs.lr"], "else": 5e-06}, "min": 0,
      "meaning": "a learning rate with many words that say what it is, so many that they do not have room on a line"},
    "probe_cfg.a_key_with_a_name_that_is_longer_than_its_column": {"type": "text", "default": "word",
      "meaning": "a word"},
    "probe_cfg.lora": {"type": "bool", "default": false, "refused": "LoRA", "meaning": "train adapters"}
  }}
})";

// HEXAD_PLUGIN_PATH, while it lives.
class PluginPath {
 public:
  explicit PluginPath(const std::string& folder) { ::setenv("HEXAD_PLUGIN_PATH", folder.c_str(), 1); }
  ~PluginPath() { ::unsetenv("HEXAD_PLUGIN_PATH"); }
  PluginPath(const PluginPath&) = delete;
};

}  // namespace

TEST_CASE("a plugin that is not built is listed with what builds it, and a run that needs it says so") {
  const TempDir dir;
  dir.write("probe/libprobe.hexad.json", kProbe);
  const std::string library = (dir / "probe/libprobe.so").string();
  const PluginPath path((dir / "probe").string());
  ends(0, {"plugin", "list"},
       "backend   probe                1.0.0     not built: make build PRESET=cuda " + library + "\n");
  const Json json = Json::parse(ends(0, {"plugin", "list", "--json"}).out).at("plugins").at(0);
  CHECK(json.at("status") == "not built");
  CHECK(json.at("build") == "make build PRESET=cuda");
  CHECK_FALSE(json.contains("sha256"));
  const std::string config = dir.write("toy.yaml", toy::config_text(dir.path())).string();
  const Ended checked = ends(3, {"config", "check", config, "policy.backend=probe"});
  CHECK_MESSAGE(contains(checked.out, "probe is not built: its library " + library), checked.out);
  ends(3, {"train", config, "policy.backend=probe"},
       "probe is not built: its library " + library + " is not there; make build PRESET=cuda");
}

TEST_CASE("plugin info prints the keys of a plugin, whether it is built or not") {
  const TempDir dir;
  dir.write("probe/libprobe.hexad.json", kProbe);
  const PluginPath path((dir / "probe").string());
  const std::string info = ends(0, {"plugin", "info", "probe"}, "status    not built: make build PRESET=cuda\n").out;
  const auto says = [&](const std::string& text) { CHECK_MESSAGE(contains(info, text), info << "\nwanted: " << text); };
  const auto row = [](const char* path, const char* type, const char* value, const char* meaning) {
    return fmt::format("\n  {:<48}{:<7}{:<16}{}", path, type, value, meaning);
  };
  says("\nkeys:" + row("policy.probe_cfg", "map", "", "the probe.\n"));
  says("\n  policy.probe_cfg.lr" + std::string(29, ' ') + "float  optimizer.kwargs.lr,\n" + std::string(57, ' ') +
       "else 5e-06\n" + std::string(73, ' ') + "a learning rate with");
  says(row("policy.probe_cfg.lora", "bool", "false", "train adapters. Not available: only false,\n"));
  says("\n  policy.probe_cfg.a_key_with_a_name_that_is_longer_than_its_column" + row("", "str", "word", "a word.\n"));
  std::istringstream lines(info);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 120, line);

  const Json json = Json::parse(ends(0, {"plugin", "info", "probe", "--json"}).out).at(0);
  CHECK(json.at("keys").size() == 4);
  CHECK(json.at("keys").at(1).at("key") == "policy.probe_cfg.lr");
  CHECK(json.at("keys").at(1).at("default").at("else") == 5e-06);
  CHECK(json.at("keys").at(3).at("status") == "refused");
  CHECK(Json::parse(ends(0, {"plugin", "info", "toy_generator", "--path", toy::plugins().string(), "--json"}).out)
            .at(0)
            .at("keys")
            .empty());
}

TEST_CASE("plugin info says what is wrong with a plugin's word on its keys") {
  const TempDir dir;
  Json manifest = Json::parse(kProbe);
  manifest["config"]["keys"]["probe_cfg"]["type"] = "mapp";
  dir.write("probe/libprobe.hexad.json", manifest.dump());
  const PluginPath path((dir / "probe").string());
  ends(0, {"plugin", "info", "probe"}, "libprobe.hexad.json: keys.probe_cfg: type: got 'mapp'");
}

TEST_CASE("a broken plugin is refused with its reason, and the run does not start") {
  const TempDir dir;
  const auto config = dir.write("toy.yaml", toy::config_text(dir.path())).string();
  toy::fs::copy(toy::plugins(), dir / "plugins");
  const std::string place = fmt::format("plugins.paths=[{}]", (dir / "plugins").string());
  const auto library = dir / "plugins/libtoy_backend.so";
  std::string reason;
  SUBCASE("changed since its manifest was written") {
    std::string bytes = plugin_test::read_text(library);
    bytes.back() ^= 1;
    std::ofstream(library, std::ios::binary) << bytes;
    reason = "another build, or a damaged copy?";
  }
  SUBCASE("cut short") {
    toy::fs::resize_file(library, toy::fs::file_size(library) / 2);
    reason = "copy incomplete on this host?";
  }
  SUBCASE("of another ABI") {
    const auto manifest = dir / "plugins/libtoy_backend.hexad.json";
    Json json = Json::parse(plugin_test::read_text(manifest));
    json["abi"]["major"] = 2;
    std::ofstream(manifest) << json;
    reason = "built for ABI 2, this engine supports 1";
  }
  const Ended run = ends(3, {"train", config, place}, reason);
  CHECK(contains(run.err, "libtoy_backend.so"));
  CHECK(contains(toy::run({"plugin", "list", "--path", (dir / "plugins").string()}).out, reason));
}

TEST_CASE("tokenize, both ways, and what it cannot take") {
  const TempDir dir;
  const auto lines = [&](const std::string& text) { return dir.write("in.jsonl", text).string(); };
  CHECK(ends(0, {"tokenize", model(), "--input", lines("{\"text\": \"abh\"}\n")}).out == "{\"token_ids\":[4,5,11]}\n");
  const std::string chat = R"({"messages": [{"role": "user", "content": "ab"}], "add_generation_prompt": true})";
  const Json rendered = Json::parse(ends(0, {"tokenize", model(), "--input", lines(chat)}).out);
  CHECK(rendered.at("text") == "<question>ab<answer>");
  CHECK(rendered.at("token_ids") == Json{1, 4, 5, 3});
  const Json decoded =
      Json::parse(ends(0, {"tokenize", model(), "--decode", "--input", lines("{\"token_ids\": [4, 5]}")}).out);
  CHECK(decoded.at("text") == "ab");
  ends(2, {"tokenize", model(), "--input", lines("{\"text\": \"a\"}\nnot json\n")}, "in.jsonl:2");
  ends(2, {"tokenize", model(), "--input", lines("{\"other\": 1}\n")}, "in.jsonl:1");
  const std::string user = R"("messages": [{"role": "user", "content": "ab"}])";
  for (const auto& [row, says] : {std::pair<std::string, const char*>(R"("messages": 3)", "field 'messages' is number"),
                                  {R"("messages": [5])", "messages[0]: want an object with a role, got 5"},
                                  {R"("messages": [{"role": "user", "content": ["a"]}])", "messages[0].content: want"},
                                  {user + R"(, "add_generation_prompt": "true")", "field 'add_generation_prompt' is s"},
                                  {user + R"(, "tools": 5)", "field 'tools': want a list of tools"}}) {
    ends(2, {"tokenize", model(), "--input", lines("{\"text\": \"a\"}\n{" + row + "}\n")},
         "in.jsonl:2: " + std::string(says));
    ends(2, {"generate", model(), "--input", lines("{\"text\": \"a\"}\n{" + row + "}\n")},
         "in.jsonl:2: " + std::string(says));
  }
  CHECK(Json::parse(
            ends(0, {"tokenize", model(), "--input", lines("{" + user + R"(, "add_generation_prompt": null})")}).out)
            .at("text") == "<question>ab");
  ends(2, {"tokenize", model(), "--input", "/nowhere.jsonl"}, "/nowhere.jsonl");
  ends(2, {"tokenize", "/nowhere", "--input", lines("{}")}, "/nowhere");
}

TEST_CASE("convert and report say what they cannot take") {
  const TempDir dir;
  ends(2, {"convert", "/nowhere", (dir / "out").string()}, "/nowhere");
  dir.write("bad.gguf", "GGUF");
  ends(2, {"convert", (dir / "bad.gguf").string(), (dir / "out").string()}, "bad.gguf");
  CHECK_FALSE(toy::fs::exists(dir / "out"));
  ends(2, {"convert", "a", "b", "--dtype", "int8"}, "float32");
  ends(2, {"convert", model(), (dir / "out").string(), "--dtype", "q8_0"}, "q8_0 is a type of GGUF files alone");
  ends(2, {"report", "/nowhere"}, "report: /nowhere/metrics.jsonl");
  dir.write("metrics.jsonl", "{\"step\": 1, \"train/reward\": 0.5}\n");
  CHECK(ends(0, {"report", dir.path().string()}).out == (dir / "report.html").string() + "\n");
  ends(2, {"report", dir.path().string(), "--port", "1"}, "--port requires --serve");
  ends(2, {"report", "--serve", "/nowhere"},
       "report --serve: /nowhere is no directory. Wanted: that of a run, or its logger.log_dir");
}

TEST_CASE("report compares runs, and prints metrics by step") {
  const TempDir dir;
  for (const char* run : {"a", "b"}) {
    dir.write(fmt::format("{}/metrics.jsonl", run), "{\"step\": 1, \"train/reward\": 0.5}\n");
    dir.write(fmt::format("{}/config.yaml", run), fmt::format("name: {}\n", run));
  }
  const std::string a = (dir / "a").string(), b = (dir / "b").string(), page = (dir / "page.html").string();
  const std::string table = ends(0, {"report", a, b, "--out", page}).out;
  CHECK(ends(0, {"report", "--compare", a, b, "--out", page}).out == table);
  CHECK(contains(table, "\nname                                        \"a\"        \"b\"\n"));
  CHECK(table.ends_with("\n" + page + "\n"));
  CHECK(contains(toy::read_text(page), "</html>"));
  CHECK(Json::parse(ends(0, {"report", a, "--json"}).out) == Json{{"train/reward", {{"1", 0.5}}}});
}

TEST_CASE("generate and score say what they cannot take") {
  const TempDir dir;
  ends(2, {"generate", model()}, "needs --prompt or --input");
  ends(2, {"generate", "/nowhere", "--prompt", "a"}, "no such directory: '/nowhere'");
  const auto lines = [&](const std::string& text) { return dir.write("in.jsonl", text).string(); };
  ends(2, {"score", model(), "--input", "/nowhere.jsonl"},
       "/nowhere.jsonl: cannot be opened: No such file or directory");
  ends(2, {"score", model(), "--input", lines("{\"token_ids\": [1]}\n{\"token_ids\": [99]}\n")},
       "in.jsonl:2: token id 99 is outside the model's vocabulary of 12");
  ends(2, {"score", model(), "--input", lines("{\"token_ids\": []}\n")}, "in.jsonl:1: wanted \"token_ids\"");
  ends(2, {"score", model(), "--input", lines("[1]\n")}, "in.jsonl:1: not a JSON object");
  ends(2, {"score", model(), "--input", lines("{\n")}, "in.jsonl:1: malformed JSON: column 2");
  ends(2,
       {"generate", model(), "--input",
        lines("{\"messages\": [{\"role\": \"user\"}], \"add_generation_prompt\": false}"),
        "++policy.tokenizer.chat_template='{{ messages[0].content }}'"},
       "in.jsonl:1: the prompt has no tokens");
  ends(2, {"generate", model(), "--input", lines("{\"text\": \"abcdefgh\"}"), "policy.max_total_sequence_length=4"},
       "in.jsonl:1: the prompt has 8 tokens, of at most 4 with its response");
  for (const char* id : {"99", "4294967300", "1.5", "-1", "\"1\"", "18446744073709551615"})
    ends(2, {"generate", model(), "--input", lines(fmt::format("{{\"token_ids\": [1, {}]}}\n", id))},
         "in.jsonl:1: token");
}

TEST_CASE("generate and score through plugins that the command line names") {
  const TempDir dir;
  const std::string paths = fmt::format("plugins.paths=[{}]", toy::plugins().string());
  const auto input = dir.write("in.jsonl", "{\"token_ids\": [1, 4, 5]}\n\n{\"token_ids\": [7]}\n").string();
  const Ended score = ends(0, {"score", model(), "--input", input, "+policy.backend=toy_backend", paths});
  std::istringstream out(score.out);
  std::string first, second;
  std::getline(out, first);
  std::getline(out, second);
  const Json values = Json::parse(first).at("logprobs");
  CHECK(values.at(0) == 0.0);
  CHECK(values.at(1).get<double>() == doctest::Approx(-std::log(12.0)));
  CHECK(Json::parse(second).at("logprobs") == Json{0.0});

  const Ended text = ends(
      0, {"generate", model(), "--prompt", "ab", "--json", "--samples", "2", "policy.generation.backend=toy_generator",
          "policy.generation.max_new_tokens=3", "policy.max_total_sequence_length=16", paths});
  const Json sample = Json::parse(text.out.substr(0, text.out.find('\n')));
  CHECK(sample.at("token_ids").size() <= 3);
  CHECK(sample.at("logprobs").size() == sample.at("token_ids").size());
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') == 2);
}
