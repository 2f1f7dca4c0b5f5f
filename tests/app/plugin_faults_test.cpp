// Whole runs with a plugin that misbehaves: they end with one line that names plugin and function.
#include <doctest/doctest.h>

#include "tests/support/said.hpp"
#include "tests/support/toy/train.hpp"

using plugin_test::Json;
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
struct hexad_loss {};
static hexad_code create(const hexad_host*, hexad_call*, const hexad_config*, hexad_loss** out) {
  *out = new hexad_loss;
  return HEXAD_OK;
}
static void destroy(hexad_loss* self) { delete self; }
static hexad_code compute(hexad_loss*, hexad_call*, const hexad_loss_batch*, hexad_loss_out*) {
  throw std::runtime_error("the advantage table is empty");
}
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0}};
static const hexad_loss_vtable vtable = [] {
  hexad_loss_vtable table{};
  table.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_vtable, compute);
  table.num_inputs = 1;
  table.caps = HEXAD_CAP_HOST_MEM;
  table.inputs = inputs;
  table.create = create;
  table.destroy = destroy;
  table.compute = compute;
  return table;
}();
HEXAD_LOSS_PLUGIN("thrower", "1.2.0", "MIT", vtable)
)";

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

TEST_SUITE_END();
