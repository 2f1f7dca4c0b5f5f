// The conformance kit on a good loss, and on a corpus of losses that are broken in one way each: every one is caught at
// its level, with its line.
#include "app/verify/verify.hpp"

#include <malloc.h>

#include "core/plugin/loader.hpp"
#include "core/plugin/precheck.hpp"
#include "tests/plugin/plugin_folder.hpp"
#include "tests/support/report.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

// tests/app/broken/NAME.
std::string broken_file(const std::string& name) {
  const char* root = std::getenv("HEXAD_SOURCE_DIR");
  return read_text(fs::path(root ? root : ".") / "tests/app/broken" / name);
}

// Compiles the loss with `flags`, verifies `levels` of it.
VerifyReport verified(const PluginFolder& folder, const std::string& flags, std::vector<int> levels,
                      const Json& manifest = Json::object(), const std::function<void(const fs::path&)>& damage = {}) {
  const fs::path library = folder.compile("toy", "-Wl,-z,now -Wl,--build-id " + flags, broken_file("loss.c"));
  folder.write_manifest(library, "toy", manifest);
  if (damage) damage(library);
  VerifyOptions options;
  options.levels = std::move(levels);
  options.timeout_s = 20;
  return verify_plugin(library.string(), options);
}

std::string lines(const VerifyReport& report) {
  std::string text;
  for (const LevelReport& level : report.levels) {
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

TEST_CASE("a good loss passes every level") {
  const PluginFolder folder;
  const VerifyReport report = verified(folder, "", {});
  CHECK_MESSAGE(lines(report) == "", lines(report));
  REQUIRE(report.levels.size() == 8);
  for (int level = 0; level < 7; ++level) CHECK(report.levels[level].checks > 0);
  CHECK(report.levels[7].not_run == "the loss takes host memory alone");
}

TEST_CASE("a loss may have inputs of its own, whose names say so") {
  const PluginFolder folder;
  const VerifyReport report = verified(folder, "'-DSECOND_INPUT=\"x_teacher\"'", {1});
  CHECK_MESSAGE(lines(report) == "", lines(report));
}

TEST_CASE("files that may not be loaded fail level 0, and no code of theirs runs") {
  const PluginFolder folder;
  const auto refused = [&](const std::string& line, const std::string& flags, const Json& manifest = Json::object(),
                           const std::function<void(const fs::path&)>& damage = {}) {
    const VerifyReport report = verified(folder, flags, {0, 1}, manifest, damage);
    CHECK_MESSAGE(contains(lines(report), line), lines(report));
    CHECK(report.levels[0].failed());
    CHECK(report.levels[1].not_run == "the file may not be loaded");
  };
  refused("built for riscv64-linux-gnu, this engine runs on", "", {{"arch", "riscv64-linux-gnu"}});
  refused("needs host ABI 1.9, this engine provides 1.", "", {{"abi", {{"min_host_minor", 9}}}});
  refused("not a hexad plugin (it does not export hexad_plugin_query_v1)", "-DNO_QUERY");
  refused("exports hexad_extra beside hexad_plugin_query_v1",
          "'-DBEFORE=__attribute__((visibility(\"default\"))) void hexad_extra(void) {}'");
  refused("asks for an executable stack", "-Wl,-z,execstack");
  refused("3000 bytes, manifest says", "", Json::object(),
          [](const fs::path& library) { fs::resize_file(library, 3000); });
  refused("others could have changed it", "", Json::object(),
          [](const fs::path& library) { fs::permissions(library, fs::perms::all); });
}

TEST_CASE("every broken loss is caught at its level, with its line") {
  const std::vector<Broken> corpus = {
      {"exits in its constructor", "'-DBEFORE=__attribute__((constructor)) static void leave(void) { _exit(3); }'", 1,
       "process: ended the process with code 3"},
      {"returns a new descriptor each time",
       "'-DQUERY_BODY={ hexad_plugin_desc* copy = (hexad_plugin_desc*)malloc(sizeof desc); memcpy(copy, &desc, sizeof "
       "desc); return copy; }'",
       1, "query: the second call returned another descriptor"},
      {"allocates in its query", "'-DQUERY_BODY={ volatile char* p = (volatile char*)malloc(4096); p[0] = 1; }'", 1,
       "query: it allocated"},
      {"lies about the size of its vtable", "-DVTABLE_SIZE=900", 1, "struct_size: the vtable says 900 bytes"},
      {"has no proper version", "'-DVERSION=\"new\"'", 1, "version: 'new' is not major.minor.patch"},
      {"declares an input twice", "'-DSECOND_INPUT=\"logprobs\"'", 1, "inputs: 'logprobs' is declared twice"},
      {"needs an input that no run has", "'-DSECOND_INPUT=\"advantage\"'", 1,
       "names: 'advantage' is no tensor that a run has, did you mean 'advantages'? (sdk/NAMES.md lists them"},
      {"declares an input otherwise than runs have it", "'-DSECOND_INPUT=\"rewards\"'", 1,
       "names: 'rewards' is declared f32 a token, and a run has f32 a sample"},
      {"declares what a backend makes as a column", "'-DSECOND_INPUT=\"entropy\"'", 1,
       "names: 'entropy' is what a backend makes: declare it HEXAD_SPEC_DIFFERENTIABLE"},
      {"wants exactly today's host",
       "'-DCREATE_BEGIN=if (host->struct_size != HEXAD_STRUCT_SIZE(hexad_host, extension)) { free(self); return "
       "host->set_error(call, 9, \"other host\", UINT64_MAX); }'",
       2, "create: under a host of a later minor, with longer structs: create failed: other host"},
      {"calls what lies behind the host's end",
       "'-DCREATE_BEGIN=if (host->struct_size > HEXAD_STRUCT_SIZE(hexad_host, extension)) ((void "
       "(*const*)(void))((const char*)host + HEXAD_STRUCT_SIZE(hexad_host, extension)))[0]();'",
       2, "process: crashed with SIG"},
      {"leaks in create", "'-DCREATE_END={ volatile char* p = (volatile char*)malloc(1000); p[0] = 1; }'", 3,
       "leak: each create and destroy leaves about"},
      {"leaks host memory", "'-DCREATE_END={ void* p; host->alloc(call, kDLCPU, 0, 64, &p); }'", 3,
       "host memory: 1000 blocks of host memory are left"},
      {"keeps its state in a global",
       "'-DBEFORE=static double all;' '-DCREATE_END=all += 1;' '-DWEIGHT=(all * mask[t] / batch->global_valid_tokens)'",
       3, "two instances: a second instance computes something else"},
      {"ignores a wrong type", "'-DON_CONFIG_ERROR=(void)code;'", 3, "config: create took scale: \"no number\""},
      {"fails without a text", "'-DCREATE_END=if (self->scale <= 0) { free(self); return HEXAD_INVALID_ARGUMENT; }'", 3,
       "error text: create with scale: 0 failed without a text"},
      {"writes behind its gradient", "'-DCOMPUTE_END=grad[batch->num_tokens] = 1;'", 3,
       "canary: it wrote bytes beside a gradient"},
      {"writes into its input", "'-DCOMPUTE_END=((float*)logp)[1] = 1;'", 3,
       "canary: it wrote input 'logprobs', which is borrowed"},
      {"writes its out pointer on failure", "'-DON_CONFIG_ERROR=*out = self; return code;'", 4,
       "out pointer: create, when config_f64"},
      {"swallows an error", "'-DON_METRIC_ERROR=(void)code;'", 4,
       "error swallowed: work, when metric (service call 1) fails, returns HEXAD_OK"},
      {"is of no use after an error", "'-DON_METRIC_ERROR=self->scale = 7; return code;'", 4,
       "usable after an error: work, when metric (service call 1) fails, and then the next call gives another result"},
      {"has a wrong gradient", "'-DGRAD=(float)(w * A[t])'", 5, "gradient: d loss / d logprobs["},
      {"divides by its own batch", "'-DWEIGHT=(mask[t] / batch->num_tokens)'", 5, "split: the "},
      {"reports a mean where sums are added", "-DNUM_METRICS=1 '-DCOMPUTE_END=HEXAD_F64(out->metrics)[0] = 0.5;'", 5,
       "metric split: the value of 'share' is 0.500000 over the whole batch, its parts sum to 1.500000"},
      {"has a gradient where the mask is 0", "'-DGRAD=(float)(-w * A[t]) + (mask[t] == 0 ? 1e-3f : 0)'", 5,
       "mask: token "},
      {"hides NaN", "'-DLOGP=(isfinite(logp[t]) ? logp[t] : 0)'", 5, "non-finite input: 'logprobs' with NaN"},
      {"sums in f32", "-DSUM=float", 5, "a million tokens: the loss is"},
      {"crashes on an empty batch", "'-DCOMPUTE_BEGIN=if (batch->num_sequences == 0) abort();'", 5,
       "process: crashed with SIGABRT"},
      {"changes from run to run",
       "'-DBEFORE=static int runs;' '-DCOMPUTE_END=*HEXAD_F64(out->loss) += 1e-12 * ++runs;'", 5,
       "repeatable: two runs on one batch differ"},
      {"throws over the edge", "-x c++ '-DCOMPUTE_BEGIN=if (batch->num_sequences == 0) throw 1;' -lstdc++", 5,
       "exception: one came over the edge of the ABI: an exception of type int"},
      {"hangs", "'-DCOMPUTE_BEGIN=if (batch->num_sequences == 0) sleep(1000);'", 5, "process: did not end within 20 s"},
      {"keeps state per thread",
       "'-DBEFORE=static __thread double known;' '-DCREATE_END=known = 1;' '-DWEIGHT=(known * mask[t] / "
       "batch->global_valid_tokens)'",
       6, "any thread: the result depends on the thread"},
      {"races in a global",
       "'-DBEFORE=static volatile int inside;' '-DCOMPUTE_BEGIN=inside++; usleep(2000);' '-DCOMPUTE_END=if (inside != "
       "1) *HEXAD_F64(out->loss) = 0; inside--;'",
       6, "instances in parallel: the result differs"},
  };
  const bool counts_heap = ::mallinfo2().uordblks > 0;  // a sanitizer's allocator does not
  for (const Broken& broken : corpus) {
    const std::string line = broken.line;
    if (!counts_heap && (line == "query: it allocated" || line.starts_with("leak:"))) {
      test_report::skipped("malloc does not say what is in use: " + std::string(broken.what));
      continue;
    }
    INFO(broken.what);
    const PluginFolder folder;
    const VerifyReport report = verified(folder, broken.flags, {broken.level});
    CHECK_MESSAGE(contains(lines(report), fmt::format("L{} {}", broken.level, line)), lines(report));
    CHECK(report.failed());
  }
}

TEST_CASE("a pass of all levels is remembered, and plugins.require_verified wants it") {
  const PluginFolder folder;
  const std::string cache = (folder.path() / "cache").string();
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const fs::path library = folder.compile("toy", "-Wl,-z,now -Wl,--build-id", broken_file("loss.c"));
  folder.write_manifest(library, "toy");
  Options wanting;
  wanting.require_verified = true;
  const auto load = [&] { return error_of([&] { Registry(wanting, nullptr).load(Kind::loss, library.string()); }); };
  CHECK(load() ==
        fmt::format(
            "{0}: has not passed the conformance kit on this machine, which plugins.require_verified wants. Run: hexad "
            "plugin verify {0}",
            library.string()));
  std::ostringstream out;
  VerifyOptions some;
  some.levels = {0, 1};
  CHECK(verify_command(library.string(), some, /*json=*/false, out) == 0);
  CHECK(contains(load(), "has not passed"));  // not all levels
  const mode_t before = ::umask(0);           // which has no say here
  CHECK(verify_command(library.string(), {}, /*json=*/false, out) == 0);
  ::umask(before);
  CHECK(contains(out.str(), "verify: passed\n"));
  fs::permissions(cache, fs::perms::owner_all);
  CHECK(load() == "(no error)");
  fs::permissions(cache + "/hexad/verified", fs::perms::all);
  CHECK(contains(load(), "has not passed"));  // anyone could have written the record
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("the report as JSON, and exit codes") {
  const PluginFolder folder;
  const fs::path library = folder.compile("toy", "-Wl,-z,lazy", broken_file("loss.c"));
  folder.write_manifest(library, "toy");
  VerifyOptions options;
  options.levels = {0, 1};
  std::ostringstream out;
  CHECK(verify_command(library.string(), options, /*json=*/true, out) == 0);
  const Json report = Json::parse(out.str());
  CHECK(report.at("plugin") == "toy");
  CHECK(report.at("passed") == true);
  CHECK(report.at("levels").size() == 2);
  CHECK(contains(report.at("levels")[0].at("findings")[0].at("text").get<std::string>(), "bound lazily"));
  options.strict = true;
  CHECK(verify_command(library.string(), options, /*json=*/false, out) == 2);
  folder.write_manifest(library, "toy", {{"kind", "backend"}});
  CHECK(verify_command(library.string(), options, /*json=*/false, out) == 1);
  CHECK(contains(out.str(), "L1 load: ") == false);
  CHECK(contains(out.str(), "manifest says backend 'toy', binary says loss 'toy'"));
}

namespace {

VerifyReport verified_of(const std::string& kind, const std::string& flags, std::vector<int> levels, int timeout_s) {
  const PluginFolder folder;
  const fs::path library = folder.compile("toy", "-Wl,-z,now -Wl,--build-id " + flags, broken_file(kind + ".c"));
  folder.write_manifest(library, "toy", {{"kind", kind}});
  VerifyOptions options;
  options.levels = std::move(levels);
  options.timeout_s = timeout_s;
  return verify_plugin(library.string(), options);
}

}  // namespace

TEST_CASE("a good generator and a good backend pass every level, and broken ones are caught with their line") {
  const Json corpus = Json::parse(broken_file("corpus.json"));
  for (const auto& [kind, broken_ones] : corpus.items()) {
    const std::string good = lines(verified_of(kind, "", {}, 60));
    CHECK_MESSAGE(good == "", good);
    CHECK(broken_ones.size() >= 8);
    for (const Json& broken : broken_ones) {
      const VerifyReport report = verified_of(kind, broken.at("flags"), {5}, 10);
      INFO(kind, " that ", broken.at("what").get<std::string>());
      CHECK_MESSAGE(contains(lines(report), "L5 " + broken.at("line").get<std::string>()), lines(report));
      CHECK(report.failed());
    }
  }
}

namespace {

std::string why_no_gpu(const std::string& device) {
  const PluginFolder folder;
  const fs::path library = folder.compile("toy", "-Wl,-z,now -Wl,--build-id", broken_file("cuda_loss.c"));
  folder.write_manifest(library, "toy", {{"memory", {"cuda"}}});
  VerifyOptions options;
  options.device = device;
  options.levels = {0, 1, 2, 7};
  return verify_plugin(library.string(), options).levels.at(3).not_run;
}

}  // namespace

TEST_CASE("without a GPU a loss for CUDA memory alone is checked as far as it goes, and not remembered") {
  if (why_no_gpu("auto").empty()) return test_report::skipped("there is a GPU: benchmarks/gpu_verify.py tests that");
  CHECK(contains(why_no_gpu("auto"), "needs a CUDA device: "));
  CHECK(why_no_gpu("cpu") == "needs a CUDA device: --device cpu was given");
  const std::string error = error_of([] { why_no_gpu("cuda"); });
  CHECK_MESSAGE(error.starts_with("--device cuda: there is no CUDA device: "), error);
  CHECK(error.ends_with(". Without one: --device cpu"));

  const PluginFolder folder;
  const fs::path library = folder.compile("toy", "-Wl,-z,now -Wl,--build-id", broken_file("cuda_loss.c"));
  folder.write_manifest(library, "toy", {{"memory", {"cuda"}}});
  const std::string cache = (folder.path() / "cache").string();
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  std::ostringstream out;
  CHECK(verify_command(library.string(), {}, /*json=*/false, out) == 0);
  CHECK(contains(out.str(), "L1 descriptor ok"));
  for (const char* level : {"L2 hosts", "L5 numbers", "L7 cuda"})
    CHECK_MESSAGE(contains(out.str(), fmt::format("{:<13} not run: needs a CUDA device: ", level)), out.str());
  CHECK_FALSE(is_verified(digest_of(library)));
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("the broken losses for CUDA compile here; benchmarks/gpu_verify.py runs them") {
  const Json corpus = Json::parse(broken_file("cuda_corpus.json"));
  CHECK(corpus.size() >= 15);
  for (const Json& broken : corpus) {
    const PluginFolder folder;
    folder.compile("toy", "-fsyntax-only -Werror " + broken.at("flags").get<std::string>(), broken_file("cuda_loss.c"));
  }
}

TEST_SUITE_END();
