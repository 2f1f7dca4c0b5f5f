// The command `start`: runtime, process groups, plugins, tokenizer; answers with what the plugins said of themselves.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lib/base/error.hpp"
#include "lib/base/joined.hpp"
#include "core/cluster/worker/choose_device.hpp"
#include "core/cluster/worker/state.hpp"

namespace hexad::cluster {
namespace {

using std::filesystem::path;

// The runtime lies beside the plugins, relative to the program.
const hexad_runtime* open_runtime() {
  const path library =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "libhexad_runtime.so";
  if (!std::filesystem::exists(library)) return nullptr;
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (!handle)
    fail(ErrorKind::worker, "{}: cannot load: {}. Was LibTorch moved? Check with ldd", library.string(), ::dlerror());
  const auto table = reinterpret_cast<const hexad_runtime* (*)()>(::dlsym(handle, "hexad_runtime_table"));
  if (!table) fail(ErrorKind::worker, "{}: no hexad_runtime_table in it: it is not of this build", library.string());
  return table();
}

void start_runtime(WorkerState& state, const Json& header) {
  state.runtime = open_runtime();
  const int world = header.at("world_size");
  const bool is_launched = state.bootstrap.local_rank >= 0;
  const int local_rank = is_launched ? state.bootstrap.local_rank : state.rank,
            local_world = is_launched ? state.bootstrap.local_world : header.value("local_world", world);
  state.device = choose_device(state.runtime, header.at("device"), local_rank, local_world);
  if (!state.runtime) {
    if (world > 1)
      fail(ErrorKind::worker,
           "libhexad_runtime.so is missing (built with HEXAD_TORCH=OFF?); without it a run has one rank");
    return;
  }
  const std::string address = is_launched ? state.bootstrap.controller : header.at("master_address").get<std::string>();
  hexad_runtime_options options{};
  options.rank = state.rank;
  options.world_size = world;
  const Json block = header.value("block", Json{0, world});
  options.block_first = block.at(0);
  options.block_size = block.at(1);
  options.local_rank = local_rank;
  options.local_size = local_world;
  options.device_type = state.device.device_type;
  options.device_id = state.device.device_id;
  options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / local_world);
  options.deterministic = state.deterministic;
  options.master_address = address.c_str();
  options.master_port = header.at("master_port");
  // Ranks that wait in vain for another say so, and which it is, before the controller gives any of them up.
  const int64_t call_ms = header.at("timeout_ms");
  options.timeout_ms = std::max(call_ms / 2, call_ms - 10'000);
  if (state.runtime->start(&options) != HEXAD_OK) fail(ErrorKind::worker, "runtime: {}", state.runtime->error());
  state.runtime_started = true;
}

Json plugin_line(const plugin::Instance& instance) {
  const plugin::LoadedPlugin& plugin = instance.plugin();
  return {{"name", plugin.manifest.name},
          {"version", plugin.manifest.version},
          {"path", plugin.path},
          {"sha256", plugin.manifest.sha256}};
}

Json backend_answer(const plugin::BackendPlugin& backend) {
  const hexad_backend_info& info = backend.info();
  Json answer = plugin_line(backend);
  answer["num_parameters"] = info.num_parameters;
  answer["dp_rank"] = info.dp_rank;
  answer["dp_size"] = info.dp_size;
  answer["sequence_multiple"] = info.sequence_multiple;
  answer["micro_batch_multiple"] = info.micro_batch_multiple;
  answer["counts_loss"] = info.counts_loss;
  answer["inputs"] = std::vector<std::string>(info.inputs, info.inputs + info.num_inputs);
  answer["outputs"] = std::vector<std::string>(info.outputs, info.outputs + info.num_outputs);
  return answer;
}

Json loss_answer(const plugin::LossPlugin& loss) {
  Json answer = plugin_line(loss);
  answer["inputs"] = loss.plain_inputs();
  answer["differentiates"] = loss.differentiable_inputs();
  return answer;
}

Json generator_answer(const plugin::GeneratorPlugin& generator) {
  Json answer = plugin_line(generator);
  answer["max_sequences"] = generator.info().max_sequences;
  answer["max_model_len"] = generator.info().max_model_len;
  answer["kv_capacity"] = generator.info().kv_capacity;
  return answer;
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

}  // namespace

namespace command {

Message start(WorkerState& state, const Message& message) {
  const Json& header = message.header;
  state.deterministic = header.value("deterministic", false);
  const Json transform = header.value("transform", Json::object());
  state.transform = {transform.value("temperature", 1.0), transform.value("top_k", int64_t{0}),
                     transform.value("top_p", 1.0)};
  start_runtime(state, header);
  if (const std::string tokenizer = header.value("tokenizer", ""); !tokenizer.empty())
    state.tokenizer = text::Tokenizer::load(tokenizer);
  plugin::Options plugins = plugin::options_from(header.value("plugins", Json::object()));
  // A confined plugin that hangs is found before the controller gives the whole worker up.
  plugins.call_limit_s = 0.9e-3 * header.at("timeout_ms").get<double>();
  state.registry = std::make_unique<plugin::Registry>(plugins, state.runtime);

  const Json locations = header.value("locations", Json::object());
  const plugin::Locate locate = [locations](std::string_view path) {
    return locations.value(std::string(path), std::string());
  };
  const Json& roles = header.at("roles");
  const auto role = [&](const char* name) { return roles.value(name, std::string()); };
  const auto config = [&](const char* path, const char* key) {
    return plugin::PluginConfig(path, header.at(key), locate);
  };

  Message answer;
  if (!role("loss").empty()) {
    const auto& loaded = state.registry->load(plugin::Kind::loss, role("loss"));
    const std::string section = header.value("loss_section", "loss_fn");
    state.loss = std::make_unique<plugin::LossPlugin>(loaded, state.context(), config(section.c_str(), "loss_fn"));
    const plugin::Options& options = state.registry->options();
    if (!options.record_dir.empty()) {
      state.loss->record(options.record_dir / fmt::format("rank_{}", state.rank), options.record_steps);
    }
    answer.header["loss"] = loss_answer(*state.loss);
  }
  if (!role("backend").empty()) {
    const auto& loaded = state.registry->load(plugin::Kind::backend, role("backend"));
    state.backend = std::make_unique<plugin::BackendPlugin>(loaded, state.context(), config("policy", "policy"));
    if (state.loss) match(*state.loss, *state.backend);
    answer.header["backend"] = backend_answer(*state.backend);
  }
  if (!role("generator").empty()) {
    const auto& loaded = state.registry->load(plugin::Kind::generator, role("generator"));
    Json section = header.at("generation");
    const bool apart = !state.backend && header.value("replay_routes", false);
    section["return_routed_experts"] = wants_routes(state) || apart;
    state.generator = std::make_unique<plugin::GeneratorPlugin>(
        loaded, state.context(), plugin::PluginConfig("policy.generation", section, locate));
    if (wants_routes(state)) require_routes(*state.generator, *state.backend);
    answer.header["generator"] = generator_answer(*state.generator);
  }
  answer.header["device"] =
      state.device.device_type == kDLCUDA ? fmt::format("cuda:{}", state.device.device_id) : "cpu";
  return answer;
}

}  // namespace command
}  // namespace hexad::cluster
