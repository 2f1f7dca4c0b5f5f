// The command `start`: runtime, process groups, plugins, tokenizer; answers with what the plugins said of themselves.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include <hexad/names.hpp>

#include "core/cluster/worker/engine.hpp"
#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/installation/home.hpp"
#include "lib/installation/wheel.hpp"

namespace hexad::cluster {
namespace {

using std::filesystem::path;

// The runtime lies beside the plugins, relative to the program.
const hexad_runtime* open_runtime() {
  const path library = installation::home() / "lib/libhexad_runtime.so";
  if (!std::filesystem::exists(library)) return nullptr;
  constexpr int kMode = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE;
  installation::open_needed(library, installation::libtorch(), kMode);
  void* handle = ::dlopen(library.c_str(), kMode);
  if (!handle)
    fail(ErrorKind::worker, "{}: cannot load: {}. Was LibTorch moved? Check with ldd", library.string(), ::dlerror());
  const auto table = reinterpret_cast<const hexad_runtime* (*)()>(::dlsym(handle, "hexad_runtime_table"));
  if (!table) fail(ErrorKind::worker, "{}: no hexad_runtime_table in it: it is not of this build", library.string());
  return table();
}

void start_runtime(WorkerState& state, const protocol::Start& start) {
  state.runtime = open_runtime();
  const bool is_launched = state.bootstrap.local_rank >= 0;
  const int local_rank = is_launched ? state.bootstrap.local_rank : state.rank,
            local_world = is_launched ? state.bootstrap.local_world : start.local_world;
  state.device = choose_device(state.runtime, start.device, local_rank, local_world);
  if (!state.runtime) {
    if (start.world_size > 1)
      fail(ErrorKind::worker,
           "libhexad_runtime.so is missing (built with HEXAD_TORCH=OFF?); without it a run has one rank");
    return;
  }
  hexad_runtime_options options{};
  options.rank = state.rank;
  options.world_size = start.world_size;
  options.block_first = start.block.first;
  options.block_size = start.block.count;
  options.local_rank = local_rank;
  options.local_size = local_world;
  options.device_type = state.device.device_type;
  options.device_id = state.device.device_id;
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, local_world));
  options.deterministic = state.deterministic;
  options.master_address = start.master_address.c_str();
  options.master_port = start.master_port;
  // Ranks that wait in vain for another say so, and which it is, before the controller gives any of them up.
  options.timeout_ms = std::max(start.timeout_ms / 2, start.timeout_ms - 10'000);
  if (state.runtime->start(&options) != HEXAD_OK) fail(ErrorKind::worker, "runtime: {}", state.runtime->error());
  state.runtime_started = true;
}

protocol::PluginLine line_of(const plugin::Instance& instance) {
  const plugin::LoadedPlugin& plugin = instance.plugin();
  return {plugin.manifest.name, plugin.manifest.version, plugin.path, plugin.manifest.sha256};
}

protocol::BackendInfo info_of(const plugin::BackendPlugin& backend) {
  const hexad_backend_info& info = backend.info();
  return {line_of(backend),
          info.num_parameters,
          info.dp_rank,
          info.dp_size,
          info.sequence_multiple,
          info.micro_batch_multiple,
          info.counts_loss != 0,
          {info.inputs, info.inputs + info.num_inputs},
          {info.outputs, info.outputs + info.num_outputs}};
}

protocol::GeneratorInfo info_of(const plugin::GeneratorPlugin& generator) {
  const hexad_generator_info& info = generator.info();
  return {line_of(generator), info.max_sequences, info.max_model_len, info.kv_capacity};
}

// A loss that must differentiate what this backend cannot make is refused before the first batch.
void match(const plugin::LossPlugin& loss, const plugin::BackendPlugin& backend) {
  const hexad_backend_info& info = backend.info();
  for (const std::string& name : loss.differentiable_inputs(/*required_only=*/true)) {
    if (std::find(info.outputs, info.outputs + info.num_outputs, name) == info.outputs + info.num_outputs) {
      fail(ErrorKind::plugin,
           "{} differentiates '{}', which {} cannot make (it makes: {}). Choose another policy.backend or "
           "loss_fn.plugin",
           loss.plugin().label(), name, backend.plugin().label(), joined(std::span(info.outputs, info.num_outputs)));
    }
  }
}

// An input that no run of the algorithm has is refused before the first batch, which may be hours of samples away.
void require_inputs(const plugin::LossPlugin& loss, const std::string& algorithm) {
  const std::string who = loss.plugin().label();
  for (const hexad_tensor_spec& input : loss.declared_inputs()) {
    if ((input.flags & (HEXAD_SPEC_OPTIONAL | HEXAD_SPEC_DIFFERENTIABLE)) || !loss.uses(input.name)) continue;
    const sdk::KnownTensor* known = sdk::known_tensor(input.name);
    if (!known && !sdk::is_own_name(input.name))
      fail(ErrorKind::plugin, "{}: needs '{}', which no run has{}{}", who, input.name, sdk::meant_name(input.name),
           sdk::kOwnNames);
    if (known && !algorithm.empty() && !known->is_of(algorithm))
      fail(ErrorKind::plugin, "{}: needs '{}', which a run of {} does not have{}", who, input.name, algorithm,
           known->algorithms.empty() ? "" : fmt::format(" (one of {} does)", known->algorithms));
    const DLDataType got = input.dtype, wanted = known ? known->dtype : got;
    if (known && (got.code != wanted.code || got.bits != wanted.bits || input.axis != known->axis))
      fail(ErrorKind::plugin, "{}: declares '{}' with another dtype or axis than runs have it (sdk/NAMES.md)", who,
           input.name);
  }
}

// A backend that replays the rollout's routing.
bool wants_routes(const WorkerState& state) {
  if (!state.backend) return false;
  const hexad_backend_info& info = state.backend->info();
  const auto* const end = info.inputs + info.num_inputs;
  return std::find(info.inputs, end, std::string_view("routed_experts")) != end;
}

void require_routes(const plugin::GeneratorPlugin& generator, const plugin::BackendPlugin& backend) {
  if (generator.info().caps & HEXAD_GEN_ROUTED_EXPERTS) return;
  fail(ErrorKind::plugin,
       "policy.router_replay: {} wants routed_experts, which {} does not give. Choose another "
       "policy.generation.backend, or set policy.router_replay.source to logprobs",
       backend.plugin().label(), generator.plugin().label());
}

// Of the model's config.json; 0 where it says none.
int64_t vocabulary_of(const path& model) {
  std::error_code error;
  const path file = model / "config.json";
  if (!std::filesystem::is_regular_file(file, error)) return 0;
  const Json config = try_parse_json<Json>(read_file(file));
  for (const Json* each :
       {&config, config.is_object() && config.contains("text_config") ? &config["text_config"] : nullptr}) {
    if (!each || !each->is_object()) continue;
    const Json size = each->value("vocab_size", Json());
    if (size.is_number_integer()) return size.get<int64_t>();
  }
  return 0;
}

}  // namespace

DLDevice choose_device(const hexad_runtime* runtime, const std::string& wanted, int rank, int ranks) {
  if (wanted == "cpu") return {kDLCPU, 0};
  const bool has_cuda = runtime && *runtime->cuda_version();
  const int gpus = has_cuda ? runtime->cuda_device_count() : 0;
  if (const std::string why = device_problem(wanted, ranks, has_cuda, gpus); !why.empty())
    throw Error(ErrorKind::config, why);
  return gpus >= ranks ? DLDevice{kDLCUDA, rank} : DLDevice{kDLCPU, 0};
}

namespace command {

protocol::Start::Reply start(WorkerState& state, const protocol::Start& start) {
  state.deterministic = start.deterministic;
  if (start.timeout_ms > 0) state.timeout_s = 1e-3 * static_cast<double>(start.timeout_ms);
  state.transform = start.transform;
  start_runtime(state, start);
  if (!start.tokenizer.empty()) state.tokenizer = text::Tokenizer::load(start.tokenizer);
  plugin::Options plugins = plugin::options_from(start.plugins);
  // A confined plugin that hangs is found before the controller gives the whole worker up.
  plugins.call_limit_s = 0.9e-3 * static_cast<double>(start.timeout_ms);
  state.registry = std::make_unique<plugin::Registry>(plugins, state.runtime);

  const plugin::Locate locate = [locations = start.locations](std::string_view path) {
    const auto found = locations.find(std::string(path));
    return found == locations.end() ? std::string() : found->second;
  };
  const auto load = [&](plugin::Kind kind, const std::string& name) -> const plugin::LoadedPlugin& {
    return state.registry->load(kind, name);
  };

  protocol::Start::Reply reply;
  if (!start.roles.loss.empty()) {
    state.loss = std::make_unique<plugin::LossPlugin>(load(plugin::Kind::loss, start.roles.loss), state.context(),
                                                      plugin::PluginConfig(start.loss_section, start.loss_fn, locate));
    const plugin::Options& options = state.registry->options();
    if (!options.record_dir.empty()) {
      state.loss->record(options.record_dir / fmt::format("rank_{}", state.rank), options.record_steps);
    }
    require_inputs(*state.loss, start.algorithm);
    reply.loss = {line_of(*state.loss), state.loss->plain_inputs(), state.loss->differentiable_inputs()};
  }
  if (!start.roles.backend.empty()) {
    state.backend =
        std::make_unique<plugin::BackendPlugin>(load(plugin::Kind::backend, start.roles.backend), state.context(),
                                                plugin::PluginConfig("policy", start.policy, locate));
    if (state.loss) match(*state.loss, *state.backend);
    reply.backend = info_of(*state.backend);
  }
  if (!start.roles.generator.empty()) {
    Json section = start.generation;
    section["return_routed_experts"] = wants_routes(state) || (!state.backend && start.replay_routes);
    state.generator =
        std::make_unique<plugin::GeneratorPlugin>(load(plugin::Kind::generator, start.roles.generator), state.context(),
                                                  plugin::PluginConfig("policy.generation", section, locate));
    if (wants_routes(state)) require_routes(*state.generator, *state.backend);
    reply.generator = info_of(*state.generator);
    state.vocabulary = vocabulary_of(section.value("model_name", ""));
  }
  const bool is_cuda = state.device.device_type == kDLCUDA;
  reply.device = is_cuda ? fmt::format("cuda:{}", state.device.device_id) : "cpu";
  if (is_cuda) reply.card = state.runtime->cuda_device_name(state.device.device_id);
  return reply;
}

}  // namespace command
}  // namespace hexad::cluster
