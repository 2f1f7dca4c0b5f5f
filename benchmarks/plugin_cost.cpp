// What plugins cost: loading 20 plain-C losses, and one call through the ABI against the plugin's function called
// directly. Checks that both ways compute the same. Standard output: one JSON object.
//   ninja -C build/dev plugin_cost && build/dev/bin/plugin_cost sdk/include
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/plugin/host/table.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/sha256.hpp"

namespace {

namespace fs = std::filesystem;
using namespace hexad;
using namespace hexad::plugin;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kPlugins = 20, kCalls = 200'000, kRepeats = 5;

constexpr const char* kSource = R"(
#include <hexad/abi.h>
struct hexad_loss { int unused; };
static struct hexad_loss one;
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  *out = &one;
  return HEXAD_OK;
}
static void destroy(hexad_loss* self) {}
static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  return HEXAD_OK;
}
static hexad_code end_step(hexad_loss* self, hexad_call* call, const hexad_step_metrics* metrics) {
  return metrics->count == 0 ? HEXAD_OK : HEXAD_INTERNAL;
}
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0}};
static const hexad_loss_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load), 1, 0, 0, HEXAD_CAP_HOST_MEM,
    inputs, 0, create, destroy, compute, 0, 0, end_step, 0, 0};
HEXAD_LOSS_PLUGIN(NAME, "1.0.0", "Apache-2.0", vtable)
)";

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string build(const fs::path& folder, const std::string& include, int index) {
  const std::string name = fmt::format("cost_{}", index), library = folder / ("lib" + name + ".so");
  std::ofstream(folder / "loss.c") << kSource;
  const std::string command = fmt::format(
      "cc -std=c11 -O2 -shared -fPIC -fvisibility=hidden -Wl,-z,noexecstack -I{} '-DNAME=\"{}\"' {}/loss.c -o {}",
      include, name, folder.string(), library);
  if (std::system(command.c_str()) != 0) fail(ErrorKind::internal, "plugin_cost: {} failed", command);
  const std::string bytes = read_file(library);
  const Json manifest = {{"format", 1},
                         {"kind", "loss"},
                         {"name", name},
                         {"version", "1.0.0"},
                         {"library", "lib" + name + ".so"},
                         {"abi", {{"major", 1}, {"min_host_minor", 0}}},
                         {"arch", "x86_64-linux-gnu"},
                         {"sha256", sha256_hex(std::as_bytes(std::span(bytes)))},
                         {"size", bytes.size()},
                         {"memory", {"host"}},
                         {"requires", Json::object()}};
  std::ofstream(folder / ("lib" + name + ".hexad.json")) << json_text(manifest);
  return name;
}

// The fastest of some repeats, in nanoseconds a call.
template <typename Function>
double per_call(Function&& function) {
  double best = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) function();
    best = std::min(best, seconds_since(begin) / kCalls * 1e9);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string include = argc > 1 ? argv[1] : "sdk/include";
  std::string pattern = (fs::temp_directory_path() / "plugin_cost_XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  Options options;
  options.paths = {folder};
  std::vector<std::string> names;
  for (int i = 0; i < kPlugins; ++i) names.push_back(build(folder, include, i));

  Registry registry(options, nullptr);
  const auto begin = Clock::now();
  const LoadedPlugin* loaded = nullptr;
  for (const std::string& name : names) loaded = &registry.load(Kind::loss, name);
  const double load_ms = seconds_since(begin) * 1e3;

  const CallContext context;
  LossPlugin loss(*loaded, context, PluginConfig("loss_fn", Json::object()));
  const hexad_loss_vtable* vtable = loaded->desc->loss;
  hexad_loss* self = nullptr;
  Call call(context, "direct");
  const PluginConfig config("loss_fn", Json::object());
  hexad_step_metrics metrics{};
  metrics.struct_size = HEXAD_STRUCT_SIZE(hexad_step_metrics, count);
  const bool works = vtable->create(loaded->host, call.handle(), config.handle(), &self) == HEXAD_OK;
  volatile hexad_code seen = HEXAD_OK;
  const double direct_ns = per_call([&] { seen = vtable->end_step(self, call.handle(), &metrics); });
  const double engine_ns = per_call([&] { loss.end_step(context, {}); });
  const Json result = {{"plugins", kPlugins},
                       {"load_ms", load_ms},
                       {"direct_ns", direct_ns},
                       {"through_engine_ns", engine_ns},
                       {"added_ns", engine_ns - direct_ns},
                       {"works", works && seen == HEXAD_OK}};
  std::printf("%s\n", json_text(result).c_str());
  fs::remove_all(folder);
  return works && seen == HEXAD_OK ? 0 : 1;
}
