// Environments that are plugins: what they are given, and what becomes of what they answer.
#include "core/environment/plugin_environment.hpp"

#include "core/environment/make.hpp"
#include "lib/base/json.hpp"

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace hexad::environment;
using plugin_test::contains;
using plugin_test::error_of;
using Json = nlohmann::ordered_json;

namespace {

// Rewards a sample with its group plus the number of its bytes that are not 0; SCORE_BEGIN and REWARD may be replaced.
constexpr const char* kSource = R"(
#ifndef HEXAD_TARGET_MINOR
#define HEXAD_TARGET_MINOR 1
#endif
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>
#ifndef REWARD
#define REWARD (s->group + strlen(s->response))
#endif
#ifdef OLD_DESCRIPTOR
#undef HEXAD_DESC_LAST_
#define HEXAD_DESC_LAST_ next
#endif
#ifndef SCORE_BEGIN
#define SCORE_BEGIN
#endif
#ifndef SCORE_END
#define SCORE_END
#endif
struct hexad_environment { const hexad_host* host; double scale; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config,
                         hexad_environment** out) {
  hexad_environment* self = calloc(1, sizeof *self);
  self->host = host;
  self->scale = 1;
  hexad_code code = host->config_f64(call, config, "scale", &self->scale);
  if (code) { free(self); return code; }
  *out = self;
  return HEXAD_OK;
}
static void destroy(hexad_environment* self) { free(self); }
static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  SCORE_BEGIN
  for (int64_t i = 0; i < count; i++) {
    const hexad_sample* s = samples[i];
    out->rewards[i] = self->scale * REWARD;
    out->invalid[i] = s->finish == HEXAD_FINISH_LENGTH;
    out->components[i] = s->tokens[s->prompt_tokens];
    out->components[count + i] = s->metadata_size;
    self->host->metric(call, "bytes", s->response_size, 1, HEXAD_REDUCE_MEAN);
    self->host->metric(call, "longest", s->response_size, 1, HEXAD_REDUCE_MAX);
  }
  SCORE_END
  return self->host->metric(call, "step", self->host->step(call), 1, HEXAD_REDUCE_LAST);
}
static const char* const components[] = {"first_token", "metadata"};
static const hexad_environment_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), 2, 0, components,
                                                create, destroy, score};
HEXAD_ENVIRONMENT_PLUGIN("toy", "1.2.0", "MIT", vtable)
)";

struct Toy {
  explicit Toy(const std::string& flags = "", const Json& manifest = {{"kind", "environment"}}) {
    folder.write_manifest(
        folder.compile("toy", flags + " '-DHEXAD_EXPORT=__attribute__((visibility(\"default\")))'", kSource), "toy",
        manifest);
  }
  std::unique_ptr<Environment> make(const Json& section = {{"plugin", "toy"}}) const {
    plugin::Options options;
    options.paths = {folder.path()};
    plugin::Registry registry(options, nullptr);
    return make_plugin_environment("mine", section, registry,
                                   [](std::string_view path) { return "run.yaml:7 " + std::string(path); });
  }
  plugin_test::PluginFolder folder;
};

// Two groups of two.
struct Samples {
  Samples() {
    const char* responses[] = {"four", "longer", "", "cut"};
    for (int i = 0; i < 4; ++i) {
      tokens.push_back({1, 2, 10 + i});
      Sample sample;
      sample.response = responses[i];
      sample.truncated = i == 3;
      sample.metadata = i == 1 ? &record : nullptr;
      sample.prompt_tokens = 2;
      sample.response_tokens = 1;
      sample.group = static_cast<uint64_t>(i) / 2;
      all.push_back(sample);
    }
    for (int i = 0; i < 4; ++i) all[i].tokens = tokens[i];
  }
  Json record = {{"a", 1}};
  std::vector<std::vector<int64_t>> tokens;
  std::vector<Sample> all;
};

}  // namespace

TEST_CASE("an environment plugin sees the sample and its scores come back") {
  const Toy toy;
  const Samples samples;
  const auto environment = toy.make({{"plugin", "toy"}, {"plugin_config", {{"scale", 2}}}});
  const Scores scores = environment->score(samples.all, 812);
  CHECK(scores.rewards == std::vector<float>{8, 12, 2, 8});
  CHECK(scores.invalid == std::vector<uint8_t>{0, 0, 0, 1});
  CHECK(scores.components.at("first_token") == std::vector<float>{10, 11, 12, 13});
  CHECK(scores.components.at("metadata") == std::vector<float>{2, 7, 2, 2});  // {} and {"a":1}
  Samples written;  // a number of the data file keeps its digits
  written.record = parse_data(R"({"a":1.10,"b":123456789012345678901})", "d");
  CHECK(environment->score(written.all, 812).components.at("metadata")[1] == 36);
  CHECK(scores.metrics.at("bytes") == (4 + 6 + 0 + 3) / 4.0);
  CHECK(scores.metrics.at("longest") == 6);
  CHECK(scores.metrics.at("step") == 812);
}

TEST_CASE("an environment plugin that fails ends the run with its name, function and reason") {
  const Samples samples;
  const auto error = [&](const std::string& flags) {
    return error_of([&] { Toy(flags).make()->score(samples.all, 3); });
  };
  const std::string infinite = error("-DREWARD='(i == 2 ? 1e300 * 1e300 : 1)'");
  CHECK_MESSAGE(contains(infinite,
                         "score at step 3: the reward of sample 2 of 4 is inf; a sample that cannot be scored is "
                         "marked invalid (rule R3 of the ABI): the plugin is faulty, tell its author"),
                infinite);
  const std::string part = error("-DSCORE_END='out->components[count + 1] = -1e300 * 1e300;'");
  CHECK_MESSAGE(contains(part, "score at step 3: component 'metadata' of sample 1 of 4 is -inf; "), part);
  const std::string failed =
      error("-DSCORE_BEGIN='return self->host->set_error(call, HEXAD_UNAVAILABLE, \"no judge\", UINT64_MAX);'");
  CHECK_MESSAGE(contains(failed, "environment 'toy' 1.2.0 ("), failed);
  CHECK_MESSAGE(contains(failed, "score at step 3: UNAVAILABLE: no judge"), failed);
}

TEST_CASE("an environment plugin may reply, and what it keeps of a sample comes back at the next turn") {
  const Toy toy(
      "-DHEXAD_TARGET_MINOR=3 -DREWARD='(10 * s->turn + s->state_size)' "
      "-DSCORE_BEGIN='static char kept[4] = \"abc\"; kept[3] = 0; "
      "if (samples[0]->turn == 0) { out->replies[0].content = \"go on\", out->replies[0].content_size = 5; "
      "out->replies[0].state = kept, out->replies[0].state_size = 3; "
      "out->replies[2].content = \"\", out->replies[2].role = \"tool\"; }'",
      {{"kind", "environment"}, {"abi", {{"min_host_minor", 3}}}});
  Samples samples;
  const auto environment = toy.make();
  const Scores first = environment->score(samples.all, 1);
  CHECK(first.rewards == std::vector<float>{0, 0, 0, 0});
  REQUIRE(first.replies.size() == 4);
  REQUIRE(first.replies[0]);
  CHECK(first.replies[0]->content == "go on");
  CHECK(first.replies[0]->role == "user");
  CHECK(first.states[0] == "abc");
  CHECK_FALSE(first.replies[1]);
  CHECK(first.states[1].is_null());
  REQUIRE(first.replies[2]);  // an empty message is one too
  CHECK(first.replies[2]->content == "");
  CHECK(first.replies[2]->role == "tool");
  for (Sample& sample : samples.all) sample.turn = 2;
  samples.all[0].state = &first.states[0];
  const Scores second = environment->score(samples.all, 1);
  CHECK(second.rewards == std::vector<float>{23, 20, 20, 20});
  for (const auto& reply : second.replies) CHECK_FALSE(reply);
}

TEST_CASE("texts of an environment that are no UTF-8 are refused by their sample") {
  const auto refused = [](const std::string& what) {
    const Toy toy("-DHEXAD_TARGET_MINOR=4 -DSCORE_BEGIN='out->" + what + "'",
                  {{"kind", "environment"}, {"abi", {{"min_host_minor", 4}}}});
    const Samples samples;
    return error_of([&] { toy.make()->score(samples.all, 1); });
  };
  const std::string rule = " (rule R6 of the ABI): the plugin is faulty, tell its author";
  const std::string reply = refused("replies[1].content = \"ab\\xff\", out->replies[1].content_size = 3;");
  CHECK_MESSAGE(contains(reply, "score at step 1: the reply of sample 1 is no UTF-8 from byte 2 on" + rule), reply);
  const std::string state = refused("replies[3].state = \"\\x80\", out->replies[3].state_size = 1;");
  CHECK_MESSAGE(contains(state, "the state of sample 3 is no UTF-8 from byte 0 on" + rule), state);
  const std::string answer = refused("answers[0].text = \"\\xc3\", out->answers[0].size = 1;");
  CHECK_MESSAGE(contains(answer, "the answer of sample 0 is no UTF-8 from byte 0 on" + rule), answer);
  for (const char* endless : {"replies[2].content = \"a\", out->replies[2].content_size = UINT64_MAX;",
                              "replies[2].state = \"a\", out->replies[2].state_size = 1ull << 50;",
                              "answers[2].text = \"a\", out->answers[2].size = UINT64_MAX;"}) {
    const std::string said = refused(endless);
    CHECK_MESSAGE(contains(said, "score at step 1: a text of sample 2 has over 1073741824 bytes" + rule), said);
  }
}

TEST_CASE("an environment plugin may tell the answers that it read") {
  const auto answers = [](const std::string& tell) {
    const Toy toy("-DHEXAD_TARGET_MINOR=4 -DSCORE_BEGIN='" + tell + "'",
                  {{"kind", "environment"}, {"abi", {{"min_host_minor", 4}}}});
    const Samples samples;
    return toy.make()->score(samples.all, 1).answers;
  };
  CHECK(answers("out->answers[1].text = \"42 and\", out->answers[1].size = 2; out->answers[2].text = \"\";") ==
        std::vector<std::string>{"", "42", "", ""});
  CHECK(answers("").empty());
}

TEST_CASE("a section without a kind is the plugin of its name or type, and has the keys that its manifest declares") {
  const Json declared = {{"keys", {{"scale", {{"type", "float"}, {"default", 3}, {"min", 0}, {"meaning", "factor"}}}}}};
  const Toy toy("", {{"kind", "environment"}, {"config", declared}});
  plugin::Options options;
  options.paths = {toy.folder.path()};
  plugin::Registry registry(options, nullptr);
  const config::Catalog catalog(options);
  const Samples samples;
  const auto first = [&](const std::string& name, const Json& section) {
    check_section(name, section, catalog);
    return environment::make(name, section, {registry})->score(samples.all, 1).rewards.at(0);
  };
  CHECK(first("toy", nullptr) == 12);  // the declared default
  CHECK(first("toy", {{"scale", 2}, {"plugin", nullptr}}) == 8);
  CHECK(first("mine", {{"type", "toy"}, {"scale", 2}}) == 8);
  CHECK(first("mine", {{"rewards", {{{"name", "toy"}, {"weight", 0.5}}, {{"name", "token_task"}}}}}) == 6);
  const auto refused = [&](const std::string& name, const Json& section) {
    std::string error = error_of([&] { check_section(name, section, catalog); });
    CHECK(error_of([&] { environment::make(name, section, {registry}); }) == error);
    return error;
  };
  CHECK(refused("toy", {{"scael", 2}}) == "env.toy.scael: unknown key, did you mean 'scale'?");
  CHECK(refused("mine", {{"type", "toy"}, {"xyzzy", 2}}) == "env.mine.xyzzy: unknown key; known: scale");
  CHECK(refused("toy", {{"scale", -1}}) == "env.toy.scale: got int -1, wanted at least 0");
  CHECK(refused("mine", {{"rewards", {{{"name", "toy"}, {"scale", "x"}}}}}).starts_with("env.mine.rewards[0].scale: "));
  CHECK(contains(refused("tyo", nullptr), "env_name: unknown environment 'tyo', did you mean 'toy'?"));
}

TEST_CASE("a part of a sum whose plugin is not there is refused by its key before anything is loaded") {
  const Toy toy("", {{"kind", "loss"}});
  plugin::Options options;
  options.paths = {toy.folder.path()};
  const config::Catalog catalog(options);
  const auto refused = [&](const char* plugin) {
    const Json section = {{"rewards", {{{"name", "own"}, {"plugin", plugin}}}}};
    return error_of([&] { check_section("mine", section, catalog); });
  };
  CHECK_MESSAGE(refused("nonesuch")
                    .starts_with("env.mine.rewards[0].plugin: environment plugin 'nonesuch' not found. searched: "),
                refused("nonesuch"));
  CHECK_MESSAGE(contains(refused("toy"), "environment plugin 'toy' not found. 'toy' is a loss. "), refused("toy"));
  CHECK_MESSAGE(contains(refused("/nowhere/libx.so"), "/nowhere/libx.so: no such plugin file"),
                refused("/nowhere/libx.so"));
}

TEST_CASE("a key that a manifest declares below plugin_config may stand beside it, in parts of a sum too") {
  const Json scale = {{"type", "float"}, {"default", 3}, {"min", 0}, {"meaning", "factor"}};
  const Toy toy("", {{"kind", "environment"}, {"config", {{"keys", {{"plugin_config.scale", scale}}}}}});
  plugin::Options options;
  options.paths = {toy.folder.path()};
  plugin::Registry registry(options, nullptr);
  const Samples samples;
  for (const Json& part : {Json{{"name", "toy"}, {"scale", 2}}, Json{{"type", "toy"}, {"name", "own"}, {"scale", 2}},
                           Json{{"plugin", "toy"}, {"name", "own"}, {"scale", 2}},
                           Json{{"name", "toy"}, {"plugin_config", {{"scale", 2}}}}}) {
    const auto sum = environment::make("mine", {{"rewards", {part}}}, {registry});
    CHECK_MESSAGE(sum->score(samples.all, 1).rewards.at(0) == 8, part.dump());
  }
}

TEST_CASE("a wrong env section is an error with its place") {
  const Toy toy;
  CHECK(error_of([&] {
          toy.make({{"plugin", 3}});
        }) == "env.mine.plugin: want the name of an environment plugin or a path, got 3");
  const std::string unread = error_of([&] { toy.make({{"plugin", "toy"}, {"plugin_config", {{"scales", 2}}}}); });
  CHECK_MESSAGE(contains(unread,
                         "run.yaml:7 env.mine.plugin_config.scales: env.mine.plugin_config.scales is not used by "
                         "'toy'. Did you mean scale?"),
                unread);
  const std::string missing = error_of([&] { toy.make({{"plugin", "toi"}}); });
  CHECK_MESSAGE(contains(missing, "toi"), missing);
}

TEST_CASE("a descriptor of an earlier minor cannot be an environment") {
  const std::string small = error_of([] { Toy("-DOLD_DESCRIPTOR").make(); });
  CHECK_MESSAGE(contains(small, "environment 'toy' must have exactly the vtable of its kind"), small);
}
