// A loss in a process of its own: it computes, says and keeps what it does in process.
#include "tests/plugin/confined/confined.hpp"

#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tests/support/said.hpp"

using namespace confined_test;

namespace {

const LoadedPlugin& loss_plugin(bool confined) {
  static const LoadedPlugin& own = plugins().load(Kind::loss, kLoss, true);
  static const LoadedPlugin& here = plugins().again(Kind::loss, own.manifest.name, false);
  return confined ? own : here;
}

pid_t pid_of(const LossValue& value) { return static_cast<pid_t>(value.metrics.at(1).value); }

// What both ways of running a plugin must give alike.
template <typename Run>
void check_alike(Run&& run) {
  const std::string own = run(loss_plugin(true)), here = run(loss_plugin(false));
  CHECK(own == here);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a confined loss runs in another process and gives the same bits") {
  LossPlugin own(loss_plugin(true), {}, section({{"scale", 0.1}})),
      here(loss_plugin(false), {}, section({{"scale", 0.1}}));
  CHECK(own.plugin().label() == here.plugin().label());
  for (const bool weighted : {true, false}) {
    LossCall a, b;
    a.weighted = b.weighted = weighted;
    const LossValue value = a.run(own), wanted = b.run(here);
    CHECK(pid_of(value) != ::getpid());
    CHECK(pid_of(wanted) == ::getpid());
    CHECK(value.loss == wanted.loss);
    CHECK(value.loss != 0);
    CHECK(a.grad == b.grad);
    CHECK(value.metrics[0].value == wanted.metrics[0].value);
  }
}

TEST_CASE("tensors that grow from call to call, and empty ones, arrive whole") {
  LossPlugin own(loss_plugin(true), {}, section({{"scale", 3}})), here(loss_plugin(false), {}, section({{"scale", 3}}));
  for (const int64_t size : {0, 1, 1000, 300'000, 10, 1'000'000}) {
    LossCall a;
    a.tokens = size;
    a.cu = {0, size / 2, size};
    a.x.assign(static_cast<size_t>(size), 0);
    for (size_t i = 0; i < a.x.size(); ++i) a.x[i] = static_cast<float>(i % 977) / 7;
    a.grad.assign(a.x.size(), 5);
    LossCall b = a;
    CHECK(a.run(own).loss == b.run(here).loss);
    CHECK(a.grad == b.grad);
  }
}

TEST_CASE("two instances of one plugin share a process and nothing else") {
  LossPlugin first(loss_plugin(true), {}, section({{"scale", 2}})),
      second(loss_plugin(true), {}, section({{"scale", 5}}));
  const LossValue one = LossCall().run(first);
  LossCall().run(first);
  const LossValue other = LossCall().run(second);
  CHECK(pid_of(one) == pid_of(other));
  CHECK(other.loss == doctest::Approx(2.5 * one.loss));
  CHECK(other.metrics[0].value == 1);
}

TEST_CASE("configuration, plan, advantages, steps and state cross the border") {
  check_alike([](const LoadedPlugin& plugin) {
    LossPlugin loss(plugin, {}, section({{"mode", "lean"}, {"scale", 7}, {"nested", {{"a", {1, nullptr}}}}}));
    LossCall call;
    const LossValue value = call.run(loss);
    std::string seen =
        fmt::format("{} {} {} {}", loss.uses("w"), loss.has_advantages(), value.metrics.size(), value.loss);
    loss.end_step({}, std::vector<std::pair<std::string, double>>{{"loss", 1}, {"kl", 0.3}});
    std::vector<float> rewards{2, -1}, out{9, 9, 9};
    int64_t two = 2, three = 3;
    DLTensor reward_tensor{rewards.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &two, nullptr, 0},
        out_tensor = reward_tensor;
    out_tensor.data = out.data(), out_tensor.shape = &three;
    const hexad_named_tensor named{"rewards", &reward_tensor, nullptr, HEXAD_AXIS_SAMPLE, 0};
    hexad_batch rollout{};
    rollout.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
    rollout.num_sequences = 2, rollout.num_tokens = 3, rollout.cu_seqlens = call.cu.data();
    rollout.tensors = &named, rollout.num_tensors = 1;
    loss.advantages({}, rollout, out_tensor);
    const std::string state = loss.save_state({});
    LossPlugin heir(plugin, {}, section(Json::object()));
    heir.load_state({}, state);
    const double calls = LossCall().run(heir).metrics.at(0).value;
    return seen + fmt::format(" {} {} {} {} {} {}", out[0], out[1], out[2], state.size(), calls,
                              error_of([&] { heir.load_state({}, "x"); }));
  });
}

TEST_CASE("keys that a confined plugin does not read, and values of a wrong type, are told with their place") {
  const auto problem = [](const LoadedPlugin& plugin, const Json& own) {
    const Locate locate = [](std::string_view path) { return std::string(path).empty() ? "" : "run.yaml:7:3"; };
    return error_of([&] { LossPlugin(plugin, {}, PluginConfig("loss_fn", {{"plugin_config", own}}, locate)); });
  };
  check_alike([&](const LoadedPlugin& plugin) { return problem(plugin, {{"scael", 2}, {"nested", {{"x", 1}}}}); });
  check_alike([&](const LoadedPlugin& plugin) { return problem(plugin, {{"scale", "much"}}); });
  CHECK(problem(loss_plugin(true), {{"scael", 2}}) ==
        fmt::format("run.yaml:7:3: loss_fn.plugin_config.scael is not used by '{}'. Did you mean scale?",
                    loss_plugin(true).manifest.name));
  CHECK(contains(problem(loss_plugin(true), {{"scale", "much"}}),
                 "create at step 0: INVALID_ARGUMENT: run.yaml:7:3: loss_fn.plugin_config.scale must be a number, got "
                 "string \"much\""));
}

TEST_CASE("metrics, log lines and what the call knows go through") {
  const test_support::Log log;
  CallContext context;
  std::vector<Metric> metrics;
  context.metric = [&](const Metric& metric) { metrics.push_back(metric); };
  LossPlugin loss(loss_plugin(true), context, section({{"scale", 4}, {"nested", "hello"}}));
  LossCall().run(loss, context);
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].name == "aside");
  CHECK(metrics[0].value == 4);
  CHECK(metrics[0].weight == 2);
  CHECK(metrics[0].reduce == HEXAD_REDUCE_MEAN);
  CHECK(contains(log.text(), fmt::format("[warning] loss '{}': \"hello\"", loss.plugin().manifest.name)));

  LossPlugin asking(loss_plugin(true), {}, section({{"mode", "deadline"}}));
  context.step = 12;
  context.flags = HEXAD_CALL_DETERMINISTIC;
  CHECK(contains(error_of([&] { LossCall().run(asking, context); }),
                 "compute at step 12: DEADLINE_EXCEEDED: step 12, flags 2, no deadline"));
  LossPlugin grouping(loss_plugin(true), {}, section({{"mode", "group"}}));
  CHECK(contains(error_of([&] { LossCall().run(grouping, context); }),
                 "FAILED_PRECONDITION: this process has no process groups"));
}

TEST_CASE("a cancellation reaches a confined plugin while it computes") {
  LossPlugin loss(loss_plugin(true), {}, section({{"mode", "cancel"}}));
  std::atomic<bool> cancelled = false;
  CallContext context;
  context.cancelled = &cancelled;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancelled = true;
  });
  CHECK(contains(error_of([&] { LossCall().run(loss, context); }), "compute at step 0: CANCELLED: as asked"));
  canceller.join();
}

TEST_CASE("what cannot be confined is refused with the reason") {
  CHECK(contains(error_of([] { plugins().load(Kind::loss, kLoss, true, "-DCAPS=HEXAD_CAP_CUDA_MEM"); }),
                 "takes CUDA memory alone, and a process of its own has host memory only. Remove 'own_"));
  CHECK(loss_plugin(true).desc->loss->caps == HEXAD_CAP_HOST_MEM);
  CHECK(plugins().load(Kind::loss, kLoss, true, "-DCAPS=11").desc->loss->caps ==
        (HEXAD_CAP_HOST_MEM | HEXAD_CAP_NONDETERMINISTIC));
  const PluginFolder folder;
  const fs::path library = folder.compile("trainer", "-DNAME=\\\"trainer\\\"");
  folder.write_manifest(library, "trainer", {{"kind", "backend"}});
  Options options;
  options.paths = {folder.path()};
  options.own_process = {"trainer"};
  CHECK(error_of([&] { Registry(options, nullptr).load(Kind::backend, "trainer"); }) ==
        "plugins.own_process names 'trainer', which is a backend here: a backend already has the worker process of its "
        "rank. Confine the run's other plugins (loss, generator, environments) instead");
}

TEST_CASE("a file that is refused is refused before a process starts, and what its process finds is told") {
  const PluginFolder folder;
  const fs::path good = folder.add("toy"), odd = folder.add("odd", "-DKIND=7"),
                 open = folder.add(
                     "open", "'-DEXTRA=int foo(void);' '-DCREATE_BODY=foo();' -Wl,--unresolved-symbols=ignore-all");
  Options options;
  options.paths = {folder.path()};
  options.program = program();
  options.own_process = {"toy", "odd", open.string()};
  const auto problem = [&](const std::string& name) {
    return error_of([&] { Registry(options, nullptr).load(Kind::loss, name); });
  };
  CHECK(contains(problem("odd"), "manifest says loss 'odd', binary says kind 7 'odd'"));
  CHECK(contains(problem(open.string()), "cannot load: undefined symbol: foo"));
  fs::resize_file(good, 3000);
  options.program = "/nonexistent";
  CHECK(contains(problem("toy"), "copy incomplete on this host?"));
  folder.write_manifest(folder.compile("late"), "late");
  options.own_process = {"late"};
  CHECK(contains(problem("late"), "cannot start /nonexistent for a plugin's own process: No such file or directory"));
}

TEST_CASE("a plugin that is confined in one registry runs in process in another") {
  CHECK(&loss_plugin(true) != &loss_plugin(false));
  CHECK(&loss_plugin(true) == &plugins().again(Kind::loss, loss_plugin(true).manifest.name, true));
}

TEST_SUITE_END();
