// An environment in a process of its own.
#include "core/plugin/kind/environment_plugin.hpp"
#include "tests/plugin/confined/confined.hpp"

using namespace confined_test;

namespace {

constexpr const char* kEnvironment = R"(
#define HEXAD_TARGET_MINOR 4
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>
struct hexad_environment { const hexad_host* host; double scale; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config,
                         hexad_environment** out) {
  hexad_environment* self = calloc(1, sizeof *self);
  self->host = host, self->scale = 1, *out = self;
  return host->config_f64(call, config, "scale", &self->scale);
}
static void destroy(hexad_environment* self) { free(self); }
static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  for (int64_t i = 0; i < count; i++) {
    const hexad_sample* s = samples[i];
    if (s->group == 99) abort();
    out->rewards[i] = (float)(self->scale * strlen(s->response) / 3 + s->group);
    out->invalid[i] = s->finish == HEXAD_FINISH_LENGTH;
    out->components[i] = (float)s->tokens[s->prompt_tokens] + (s->ground_truth[0] == 'g');
    if (s->turn == 1) {
      out->replies[i].content = s->response, out->replies[i].content_size = s->response_size;
      out->replies[i].role = "tool";
      out->replies[i].state = s->state, out->replies[i].state_size = s->state_size;
    }
    out->answers[i].text = s->response, out->answers[i].size = s->response_size;
    out->components[count + i] = (float)(s->metadata_size + s->prompt_size + s->response_tokens);
    self->host->metric(call, "bytes", (double)s->response_size, 1, HEXAD_REDUCE_MEAN);
  }
  return 0;
}
static const char* const components[] = {"first", "sizes"};
static const hexad_environment_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), 2,
                                                HEXAD_CAP_NONDETERMINISTIC, components, create, destroy, score};
HEXAD_ENVIRONMENT_PLUGIN(NAME, "1.2.0", "MIT", vtable)
)";

// The scores of three samples, as text.
std::string scores(EnvironmentPlugin& environment, uint64_t group = 1) {
  const std::vector<std::string> responses = {"four", "", "longer"};
  const std::vector<int64_t> tokens = {5, 6, 7};
  std::vector<hexad_sample> samples;
  for (const std::string& response : responses) {
    hexad_sample sample{};
    sample.struct_size = HEXAD_STRUCT_SIZE(hexad_sample, state_size);
    sample.finish = response.empty() ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_STOP;
    sample.group = group;
    sample.prompt = "p", sample.prompt_size = 1;
    sample.response = response.c_str(), sample.response_size = response.size();
    sample.ground_truth = "g", sample.ground_truth_size = 1;
    sample.metadata = "{}", sample.metadata_size = 2;
    sample.tokens = tokens.data(), sample.prompt_tokens = 1, sample.response_tokens = 2;
    sample.turn = response == "four", sample.state = "kept\0more", sample.state_size = 9;
    samples.push_back(sample);
  }
  const std::vector<const hexad_sample*> pointers = {&samples[0], &samples[1], &samples[2]};
  CallContext context;
  std::string text;
  context.metric = [&](const Metric& metric) { text += fmt::format("{}={} ", metric.name, metric.value); };
  const EnvironmentScores found = environment.score(context, pointers);
  for (size_t i = 0; i < samples.size(); ++i)
    text +=
        fmt::format("{}/{}/{}/{} ", found.rewards[i], found.invalid[i], found.components[0][i], found.components[1][i]);
  for (const EnvironmentReply& reply : found.replies)
    text += fmt::format("{}:{}:{} ", reply.content.value_or("none"), reply.role, reply.state.value_or("none").size());
  for (const std::string& answer : found.answers) text += fmt::format("[{}]", answer);
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a confined environment scores as in process, and its crash is an error") {
  const auto section_of = [] { return PluginConfig("env.mine", {{"plugin_config", {{"scale", 0.1}}}}); };
  const LoadedPlugin& own = plugins().load(Kind::environment, kEnvironment, true);
  EnvironmentPlugin confined(own, {}, section_of());
  EnvironmentPlugin here(plugins().again(Kind::environment, own.manifest.name, false), {}, section_of());
  CHECK(confined.component_names() == here.component_names());
  CHECK(own.desc->environment->caps == HEXAD_CAP_NONDETERMINISTIC);
  CHECK(scores(confined) == scores(here));
  CHECK(contains(scores(confined), "bytes=4 bytes=0 bytes=6 1.13"));
  CHECK(contains(scores(confined), "four:tool:9 none:user:4 none:user:4 [four][][longer]"));
  CHECK(contains(error_of([&] { scores(confined, 99); }), "was killed by signal 6 (Aborted) during score"));
}

TEST_SUITE_END();
