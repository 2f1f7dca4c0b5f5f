// The conformance kit on environments: a good one passes, each broken one is caught at its level with its line.
#include "app/verify/verify.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using plugin_test::contains;
using plugin_test::PluginFolder;

namespace {

// Rewards responses that hold the ground truth; a flag breaks it in one way.
constexpr const char* kSource = R"(
#define HEXAD_TARGET_MINOR 4
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef REWARD
#define REWARD (strstr(s->response, s->ground_truth) != NULL)
#endif
#ifndef SAMPLE
#define SAMPLE
#endif
#ifndef SCORE_END
#define SCORE_END
#endif
#ifndef SECOND
#define SECOND "length"
#endif
#ifndef VTABLE_SIZE
#define VTABLE_SIZE HEXAD_STRUCT_SIZE(hexad_environment_vtable, score)
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
static int calls;
static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  calls++;
  for (int64_t i = 0; i < count; i++) {
    const hexad_sample* s = samples[i];
    SAMPLE
    out->rewards[i] = REWARD;
    out->invalid[i] = s->ground_truth_size == 0;
    out->components[i] = out->rewards[i];
    out->components[count + i] = s->response_size;
  }
  SCORE_END
  return self->host->metric(call, "seen", count, 1, HEXAD_REDUCE_SUM);
}
static const char* const components[] = {"right", SECOND};
static const hexad_environment_vtable vtable = {VTABLE_SIZE, 2, 0, components, create, destroy, score};
HEXAD_ENVIRONMENT_PLUGIN("toy", "1.2.0", "MIT", vtable)
)";

std::string findings(const std::string& flags, std::vector<int> levels) {
  const PluginFolder folder;
  const auto library = folder.compile(
      "toy", "-Wl,-z,now -Wl,--build-id '-DHEXAD_EXPORT=__attribute__((visibility(\"default\")))' " + flags, kSource);
  folder.write_manifest(library, "toy", {{"kind", "environment"}, {"abi", {{"min_host_minor", 4}}}});
  VerifyOptions options;
  options.levels = std::move(levels);
  options.timeout_s = 20;
  std::string text;
  for (const LevelReport& level : verify_plugin(library.string(), options).levels) {
    for (const auto& finding : level.findings)
      text += fmt::format("L{} {}: {}\n", level.level, finding.check, finding.text);
  }
  return text;
}

struct Broken {
  const char* what;
  std::string flags;
  int level;
  const char* line;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a good environment passes every level") { CHECK(findings("", {}) == ""); }

TEST_CASE("so does one of several turns") {
  CHECK(findings("'-DSAMPLE=static char kept[4096]; kept[i] = (char)(48 + s->turn);"
                 "if (s->state_size != (s->turn > 0) || (s->turn && s->state[0] != 47 + s->turn)) abort();"
                 "out->replies[i].state = kept + i; out->replies[i].state_size = 1;"
                 "if (s->turn < 2) { out->replies[i].content = \"more\"; out->replies[i].content_size = 4; }'",
                 {}) == "");
}

TEST_CASE("every broken environment is caught at its level, with its line") {
  const Broken corpus[] = {
      {"lies about the size of its vtable", "-DVTABLE_SIZE=900", 1, "struct_size: the vtable says 900 bytes"},
      {"declares a component twice", "'-DSECOND=\"right\"'", 1, "components: 'right' is declared twice"},
      {"counts on the size of a sample",
       "'-DSAMPLE=if (s->struct_size != HEXAD_STRUCT_SIZE(hexad_sample, "
       "state_size)) return self->host->set_error(call, 3, \"odd sample\", UINT64_MAX);'",
       2, "run: under a host of a later minor, with longer structs: odd sample"},
      {"writes behind its rewards", "'-DSCORE_END=out->rewards[count] = 1;'", 5,
       "canary: with ordinary responses it wrote outside of rewards"},
      {"writes into the tokens", "'-DSAMPLE=((int64_t*)s->tokens)[0] = 0;'", 5, "it wrote to the tokens of sample 7"},
      {"rewards with NaN", "'-DREWARD=0.0 / (s->response_size > 2) - 0.0 / (s->response_size > 2)'", 5,
       "mark it invalid"},
      {"fails on an empty response",
       "'-DSAMPLE=if (!s->response_size) return self->host->set_error(call, 3, \"empty\", UINT64_MAX);'", 5,
       "score: odd response 0 made the whole call fail: empty. What one sample is to blame for is marked invalid"},
      {"crashes on a huge response", "'-DSAMPLE=if (s->response_size > 100000) abort();'", 5,
       "process: crashed with SIGABRT"},
      {"counts its calls", "'-DREWARD=(float)calls'", 5,
       "repeatable: the same samples get other scores the second time"},
      {"whitens over the batch", "'-DREWARD=(1.0f / count)'", 5,
       "cut: group 3 alone gets other scores than among others"},
      {"counts turns by itself",
       "'-DSAMPLE=static int seen; out->replies[i].content = \"more\"; out->replies[i].content_size = 4;' "
       "'-DREWARD=(s->turn ? seen++ : 0)'",
       5, "turns: turn 1 gets other scores the second time: what an environment wants to know of a sample it keeps in"},
      {"writes a reply behind the last", "'-DSCORE_END=out->replies[count].state_size = 1;'", 5,
       "canary: with ordinary responses it wrote outside of replies"},
      {"writes an answer behind the last", "'-DSCORE_END=out->answers[count].size = 1;'", 5,
       "canary: with ordinary responses it wrote outside of answers"},
      {"is not there for nobody",
       "'-DSCORE_END=if (count == 0) return self->host->set_error(call, 3, \"none\", UINT64_MAX);'", 5,
       "empty: no samples at all are an error"},
  };
  for (const Broken& broken : corpus) {
    INFO(broken.what);
    const std::string lines = findings(broken.flags, {broken.level});
    CHECK_MESSAGE(contains(lines, broken.line), lines);
  }
}

TEST_SUITE_END();
