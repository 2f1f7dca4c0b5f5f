// Whole runs with a plugin that misbehaves: they end with one line that names plugin and function.
#include <doctest/doctest.h>

#include "tests/support/said.hpp"
#include "tests/support/toy/train.hpp"

using plugin_test::contains;
using plugin_test::PluginFolder;
using toy::Arguments;
using toy::Ended;
using toy::TempDir;

namespace {

// The toy's run with what stands in `folder` beside its own plugins.
Arguments train_with(const TempDir& dir, const PluginFolder& folder, Arguments overrides) {
  overrides.push_back(fmt::format("plugins.paths=[{}, {}]", toy::plugins().string(), folder.path().string()));
  overrides.push_back("checkpointing.enabled=false");
  return toy::train(dir, std::move(overrides));
}

// A loss in C++ without the wrapper, whose compute throws.
constexpr const char* kThrower = R"(
#include <hexad/abi.h>
#include <stdexcept>
#include <string>
#ifndef THROWN
#define THROWN std::runtime_error("the advantage table is empty")
#endif
struct hexad_loss {};
static hexad_code create(const hexad_host*, hexad_call*, const hexad_config*, hexad_loss** out) {
  *out = new hexad_loss;
  return HEXAD_OK;
}
static void destroy(hexad_loss* self) { delete self; }
static hexad_code compute(hexad_loss*, hexad_call*, const hexad_loss_batch*, hexad_loss_out*) {
  try {
    throw THROWN;
  } catch (const std::logic_error&) {
    std::throw_with_nested(std::runtime_error("cannot weigh"));
  }
}
#ifndef WANTS
#define WANTS "token_mask"
#endif
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
    {WANTS, HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0}};
static const hexad_loss_vtable vtable = [] {
  hexad_loss_vtable table{};
  table.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_vtable, compute);
  table.num_inputs = 2;
  table.caps = HEXAD_CAP_HOST_MEM;
  table.inputs = inputs;
  table.create = create;
  table.destroy = destroy;
  table.compute = compute;
  return table;
}();
HEXAD_LOSS_PLUGIN("thrower", "1.2.0", "MIT", vtable)
)";

// An environment that rewards everything with 1, and does what `plugin_config.fault` says: at its creation, or from
// step `at` on.
constexpr const char* kEnvironment = R"(
#define HEXAD_TARGET_MINOR 1
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct hexad_environment { const hexad_host* host; char fault[16]; int64_t at; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config,
                         hexad_environment** out) {
  const char* fault = "";
  hexad_environment* self = calloc(1, sizeof *self);
  self->host = host;
  host->config_str(call, config, "fault", &fault);
  host->config_i64(call, config, "at", &self->at);
  strncpy(self->fault, fault, sizeof self->fault - 1);
  if (!strcmp(fault, "hang in create")) for (;;) sleep(1);
  *out = self;
  return HEXAD_OK;
}
static void destroy(hexad_environment* self) {
  if (!strcmp(self->fault, "destroy")) *(volatile int*)8 = 1;
  free(self);
}
static int overflow(int depth) {
  volatile char big[4096];
  big[0] = depth;
  return overflow(depth + 1) + big[0];
}
static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  const int now = self->host->step(call) >= self->at;
  for (int64_t i = 0; i < count; i++) out->rewards[i] = i % 3, out->components[i] = 1;
  if (now && !strcmp(self->fault, "hang")) {
    self->host->log(call, HEXAD_LOG_WARN, "hangs now", UINT64_MAX);
    for (;;) sleep(1);
  }
  for (int i = 0; i < 4 && !strcmp(self->fault, "claims"); i++) {
    const char* const names[] = {"reward", "accuracy", "lr", "mine"};
    self->host->metric(call, names[i], 777, 1, HEXAD_REDUCE_SUM);
  }
  if (now && !strcmp(self->fault, "segv")) *(volatile int*)8 = 1;
  if (now && !strcmp(self->fault, "overflow")) return overflow(0);
  if (now && !strcmp(self->fault, "exit")) exit(0);
  if (now && !strcmp(self->fault, "quick")) quick_exit(0);
  if (now && !strcmp(self->fault, "flood")) {
    char* text = calloc(1, 1 << 24);
    memset(text, 'x', (1 << 24) - 1);
    return self->host->set_error(call, HEXAD_INTERNAL, text, UINT64_MAX);
  }
  return HEXAD_OK;
}
static const char* const components[] = {"part"};
static const hexad_environment_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), 1, 0, components,
                                                create, destroy, score};
HEXAD_ENVIRONMENT_PLUGIN("faulty", "1.2.0", "MIT", vtable)
)";

// Runs with that environment.
struct Faulty {
  Faulty() {
    folder.write_manifest(
        folder.compile("faulty", "'-DHEXAD_EXPORT=__attribute__((visibility(\"default\")))'", kEnvironment), "faulty",
        {{"kind", "environment"}, {"abi", {{"min_host_minor", 1}}}});
  }
  Arguments arguments(const TempDir& dir, const std::string& fault, int at, Arguments more = {}) const {
    more.insert(more.begin(), {"data.train.env_name=mine", fmt::format("+env.mine={{plugin: faulty, plugin_config: "
                                                                       "{{fault: {}, at: {}}}}}",
                                                                       fault, at)});
    return train_with(dir, folder, std::move(more));
  }
  Ended run(const std::string& fault, Arguments more = {}) const {
    const TempDir dir;
    return toy::run(arguments(dir, fault, 1, std::move(more)));
  }
  PluginFolder folder;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the text of an exception that escaped is told, also where the plugin has a C++ runtime of its own") {
  for (const char* flags : {"", "-static-libstdc++", "-static-libgcc", "-static-libstdc++ -static-libgcc"}) {
    INFO(flags);
    const PluginFolder folder;
    folder.write_manifest(folder.compile_cpp("thrower", flags, kThrower), "thrower");
    const TempDir dir;
    const Ended run = toy::run(train_with(dir, folder, {"loss_fn.plugin=thrower"}));
    CHECK(run.code == 3);
    SAYS(run.err, "hexad: loss 'thrower' 1.2.0 (");
    SAYS(run.err, "): compute at step 1: threw a C++ exception across the ABI: the advantage table is empty: ");
  }
}

TEST_CASE("whatever escaped is told: a text, the type of what has none, and the reason that an exception carries") {
  struct Escaped {
    const char *thrown, *told;
  };
  for (const Escaped& each : {Escaped{"std::string(\"no table\")", "no table"},
                              {"\"a literal\"", "a literal"},
                              {"42", "an exception of type int"},
                              {"std::out_of_range(\"row 7\")", "cannot weigh: row 7"}}) {
    INFO(each.thrown);
    const PluginFolder folder;
    const std::string flag = fmt::format("'-DTHROWN={}'", each.thrown);
    folder.write_manifest(folder.compile_cpp("thrower", flag, kThrower), "thrower");
    for (const char* own_process : {"[]", "[thrower]"}) {
      const TempDir dir;
      const Ended run = toy::run(
          train_with(dir, folder, {"loss_fn.plugin=thrower", fmt::format("++plugins.own_process={}", own_process)}));
      CHECK(run.code == 3);
      SAYS(run.err, fmt::format("threw a C++ exception across the ABI: {}: the plugin is faulty", each.told));
    }
  }
}

TEST_CASE("a loss that needs what the run does not have is refused before the first sample") {
  const auto refused = [](const std::string& input) {
    const PluginFolder folder;
    folder.write_manifest(folder.compile_cpp("thrower", fmt::format("'-DWANTS=\"{}\"'", input), kThrower), "thrower");
    const TempDir dir;
    const Ended run = toy::run(train_with(dir, folder, {"loss_fn.plugin=thrower"}));
    CHECK(run.code == 3);
    CHECK_FALSE(contains(run.out + run.err, "step 1"));
    return run.err;
  };
  SAYS(refused("prev_logprob"),
       "): needs 'prev_logprob', which no run has, did you mean 'prev_logprobs'? (sdk/NAMES.md");
  SAYS(refused("returns"), "): needs 'returns', which a run of grpo does not have");
  const std::string other = "with another dtype or axis than runs have it (sdk/NAMES.md)";
  SAYS(refused("rewards"), "): declares 'rewards' " + other);      // of a sample
  SAYS(refused("input_ids"), "): declares 'input_ids' " + other);  // i64
}

TEST_CASE("a crash in an environment is told with plugin and function, a stack overflow and exit() too") {
  const Faulty faulty;
  const std::string in_score = "in environment 'faulty' 1.2.0 (";
  for (const char* fault : {"segv", "overflow"}) {
    INFO(fault);
    const Ended run = faulty.run(fault);
    CHECK(run.code == -SIGSEGV);
    SAYS(run.err, "\nhexad: crashed " + in_score);
    SAYS(run.err, "): score at step 1\n");
  }
  const Ended destroyed = faulty.run("destroy", {"grpo.max_num_steps=1"});
  CHECK(destroyed.code == -SIGSEGV);
  SAYS(destroyed.err, "): destroy at step 1\n");
  for (const char* fault : {"exit", "quick"}) {
    INFO(fault);
    const Ended exited = faulty.run(fault);
    CHECK(exited.code == 3);
    SAYS(exited.err, "\nhexad: the program was ended by exit() " + in_score);
  }
}

TEST_CASE("what a plugin has to say does not flood the terminal") {
  const Faulty faulty;
  const Ended flood = faulty.run("flood");
  CHECK(flood.code == 3);
  SAYS(flood.err, "): score at step 1: INTERNAL: xxxxx");
  CHECK(flood.err.size() < 100'000);
}

TEST_CASE("a plugin's metric never takes the place of one of the engine's, and that is said once a name") {
  const Faulty faulty;
  const TempDir plain, claimed, loss, lossless;
  REQUIRE(toy::run(faulty.arguments(plain, "none", 1)).code == 0);
  const Ended run = toy::run(faulty.arguments(claimed, "claims", 1));
  REQUIRE(run.code == 0);
  const auto want = toy::lines(plain / "logs/exp_001/metrics.jsonl");
  const auto got = toy::lines(claimed / "logs/exp_001/metrics.jsonl");
  REQUIRE(got.size() > 1);
  for (size_t i = 0; i < got.size(); ++i) {
    for (const char* name : {"train/reward", "train/accuracy", "train/lr"})
      CHECK(got[i].at(name) == want.at(i).at(name));
    CHECK(got[i].at("train/mine") == 777);
  }
  for (const char* name : {"reward", "accuracy", "lr"}) {
    const std::string line = fmt::format("a plugin reports the metric '{}', and so does the engine", name);
    const size_t at = run.err.find(line);
    CHECK_MESSAGE(at != std::string::npos, run.err);
    CHECK(run.err.find(line, at + 1) == std::string::npos);
  }
  // The loss, which decides whether a step is dropped, is counted where the plugin runs.
  const auto losses = [](const TempDir& dir, Arguments more) {
    REQUIRE(toy::run(toy::train(dir, std::move(more))).code == 0);
    std::vector<double> all;
    for (const auto& line : toy::lines(dir / "logs/exp_001/metrics.jsonl"))
      if (line.contains("train/loss")) all.push_back(line.at("train/loss").get<double>());
    return all;
  };
  CHECK(losses(loss, {"+policy.plugin_config.fault=train@0:claims"}) == losses(lossless, {}));
  // How far policies are apart is told once.
  CHECK(toy::lines(loss / "logs/exp_001/metrics.jsonl").at(0).at("train/gen_kl_error") == 0.25);
}

TEST_CASE("an environment that never returns ends the run after cluster.worker_timeout_s, with its name") {
  const Faulty faulty;
  const Ended run = faulty.run("hang", {"++cluster.worker_timeout_s=2"});
  CHECK(run.code == 3);
  CHECK(run.seconds < 60);
  SAYS(run.err, "hexad: environment 'faulty' 1.2.0 (");
  SAYS(run.err,
       "): score at step 1: has not returned within 2 s (cluster.worker_timeout_s): it hangs, or it takes that");
  const Ended made = faulty.run("hang in create", {"++cluster.worker_timeout_s=2"});
  CHECK(made.code == 3);
  SAYS(made.err, "): create at step 0: has not returned within 2 s (cluster.worker_timeout_s)");
  const Ended own = faulty.run("hang", {"++cluster.worker_timeout_s=2", "++plugins.own_process=[faulty]"});
  CHECK(own.code == 3);
  SAYS(own.err, "environment 'faulty' 1.2.0 (");
}

TEST_CASE("what a generator says wrong ends the run in one line with plugin, function and rule") {
  struct Wrong {
    const char *fault, *line;
  };
  const std::vector<Wrong> all = {
      {"spoil@1:id", "the completion of request 100000: it was never submitted, or has ended before (rule G2 "},
      {"spoil@1:twice", "the completion of request 0: it was never submitted, or has ended before (rule G2 "},
      {"spoil@1:token", "the completion of request 0: its token 0 is 4000, and the model has "},
      {"spoil@1:negative", "the completion of request 0: its token 0 is -1 (rule G3 "},
      {"spoil@1:nan", "the completion of request 0: the log-prob of its token 0 is nan (rule G3 "},
      {"spoil@1:inf", "the completion of request 0: the log-prob of its token 0 is -inf (rule G3 "},
      {"spoil@1:long", "the completion of request 0: it has 3 tokens, and 2 were allowed (rule G3 "},
      {"spoil@1:count", "the completion of request 0: its count is -1 (rule G3 "},
      {"spoil@1:empty", "the completion of request 0: it has no token: the one that ends a response is a part of it "},
      {"spoil@1:null", "the completion of request 0: its 2 tokens or their log-probs are NULL (rule G3 "},
      {"spoil@1:finish", "the completion of request 0: its finish is 9, which the ABI does not name (rule G3 "},
      {"spoil@1:spans", "the completion of request 0: it has tokens and no version span (rule G3 "},
      {"spoil@1:start", "the completion of request 0: its first version span begins at token 1 (rule G3 "},
      {"events@1:many", "it says that it brought 257 events, and has room for 256 (rule G1 "},
      {"events@1:less", "it says that it brought -1 events, and has room for 256 (rule G1 "},
      {"events@1:null", "event 0 of 1 is NULL (rule G1 "}};
  for (const Wrong& wrong : all) {
    INFO(wrong.fault);
    const TempDir dir;
    const Ended run = toy::run(toy::train(
        dir, {"checkpointing.enabled=false", fmt::format("+policy.generation.plugin_config.fault={}", wrong.fault)}));
    CHECK(run.code == 3);
    SAYS(run.err, "hexad: generator 'toy_generator' 1.2.0 (");
    SAYS(run.err, std::string("): poll at step 1: ") + wrong.line);
  }
  const TempDir dir;
  const Ended aborted = toy::run(toy::train(dir, {"+policy.generation.plugin_config.fault=spoil@1:abort"}));
  CHECK(aborted.code == 3);
  SAYS(aborted.err, "request 0: ended as aborted, and nobody has cancelled it");
}

TEST_CASE("a generator that hangs, or brings nothing, ends the run after cluster.worker_timeout_s, with its name") {
  const auto run = [](const TempDir& dir, const std::string& fault) {
    return toy::run(toy::train(dir, {"checkpointing.enabled=false", "++cluster.worker_timeout_s=3",
                                     "+policy.generation.plugin_config.fault=" + fault}));
  };
  const TempDir silent, hanging, submitting;
  const Ended nothing = run(silent, "silence@1:dead");
  CHECK(nothing.code == 3);
  CHECK(nothing.seconds < 60);
  SAYS(nothing.err, "hexad: generator 'toy_generator' 1.2.0 (");
  SAYS(nothing.err, "): poll at step 1: 64 requests are under way, and it has brought nothing for ");
  const Ended hung = run(hanging, "poll@1:hang");
  CHECK(hung.code == 4);
  CHECK(hung.seconds < 60);
  SAYS(hung.err, "did not answer within 3 s");
  SAYS(hung.err, "; it was in generator 'toy_generator' 1.2.0 (");
  SAYS(hung.err, "): poll at step 1, for ");
  SAYS(run(submitting, "generate@1:hang").err, "): submit at step 1, for ");
}

TEST_CASE("a generator that says that it is at work has all the time") {
  const TempDir dir;
  toy::Program program(
      toy::train(dir, {"++cluster.worker_timeout_s=1", "+policy.generation.plugin_config.fault=silence@1:alive"}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "\ngenerator "); }));
  std::this_thread::sleep_for(std::chrono::seconds(4));
  CHECK(toy::alive(program.pid()));
  CHECK_FALSE(contains(program.err(), "has brought nothing"));
}

TEST_CASE("one Ctrl-C ends a run whose environment never returns, and the steps before are saved") {
  const Faulty faulty;
  const TempDir dir;
  Arguments arguments = faulty.arguments(dir, "hang", 3);
  arguments.push_back("checkpointing.enabled=true");
  toy::Program program(arguments);
  REQUIRE(toy::eventually([&] { return contains(program.err(), "hangs now"); }));
  ::kill(program.pid(), SIGINT);
  const Ended run = program.wait(60);
  CHECK(run.code == 130);
  SAYS(run.err, "env.mine: interrupted, and the rewards of step 3 have not come");
  SAYS(run.out, "interrupted and saved after step 2");
}

TEST_SUITE_END();
