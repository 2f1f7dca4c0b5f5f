// hexad plugin replay NAME|FILE.so RECORDING...: recorded calls of a loss, put to another loss or to a changed one.
#include <cmath>
#include <deque>
#include <iostream>

#include "app/commands.hpp"
#include "core/config/declaration/declaration.hpp"
#include "core/manifest/options.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
#include "core/plugin/recording.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

const RecordedArray& need(const Recording& recording, const std::string& name, const std::string& where) {
  const RecordedArray* found = recording.find(name);
  if (!found) fail(ErrorKind::data, "{}: has no '{}': not a recorded loss call", where, name);
  return *found;
}

DLTensor view(RecordedArray& array) {
  return {array.bytes.data(),
          {kDLCPU, 0},
          static_cast<int32_t>(array.shape.size()),
          array.dtype,
          array.shape.data(),
          nullptr,
          0};
}

// The recorded inputs as the engine passes them: those that the loss differentiates, with gradients, and the others.
struct Inputs {
  std::deque<RecordedArray> arrays;
  std::deque<DLTensor> tensors;
  std::vector<hexad_named_tensor> plain, outputs;
  std::vector<DLTensor*> grads;
  std::vector<std::string> names;  // of outputs

  Inputs(const LossPlugin& loss, const Recording& recording) {
    for (const hexad_tensor_spec& spec : loss.declared_inputs()) {
      const RecordedArray* recorded = recording.find(std::string("input.") + spec.name);
      if (!recorded) continue;
      DLTensor* tensor = keep(*recorded);
      const hexad_named_tensor named = {spec.name, tensor, nullptr, spec.axis, 0};
      if (!(spec.flags & HEXAD_SPEC_DIFFERENTIABLE)) {
        plain.push_back(named);
        continue;
      }
      outputs.push_back(named);
      names.push_back(spec.name);
      grads.push_back(keep(*recorded));  // f32 of the same shape; zeroed by the engine
    }
  }
  DLTensor* keep(const RecordedArray& array) {
    arrays.push_back(array);
    return &tensors.emplace_back(view(arrays.back()));
  }
};

double worst_difference(const Inputs& inputs, const Recording& recording) {
  double worst = 0;
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    const RecordedArray* recorded = recording.find("grad." + inputs.names[i]);
    const auto* now = static_cast<const float*>(inputs.grads[i]->data);
    for (size_t t = 0; recorded && t < recorded->bytes.size() / sizeof(float); ++t) {
      const double difference =
          std::abs(double{now[t]} - double{reinterpret_cast<const float*>(recorded->bytes.data())[t]});
      worst = std::isnan(difference) ? difference : std::max(worst, difference);
      if (std::isnan(worst)) return worst;
    }
  }
  return worst;
}

Json replay(const LoadedPlugin& plugin, const std::filesystem::path& file, const Json& plugin_config) {
  const std::string where = file.string();
  const Recording recording = read_recording(file);
  const Json& about = recording.about;
  Json section = about.at("section");
  if (about.at("name") != plugin.manifest.name) section.erase("plugin_config");
  for (const auto& [key, value] : plugin_config.items()) section["plugin_config"][key] = value;
  PluginConfig config("loss_fn", std::move(section));
  if (const auto declaration = config::read_declaration(plugin.manifest, plugin.path)) config.fill(*declaration);
  CallContext context;
  context.step = about.at("step");
  context.metric = [](const Metric&) {};
  LossPlugin loss(plugin, context, std::move(config));

  const RecordedArray& offsets = need(recording, "cu_seqlens", where);
  const LossShape shape{offsets.shape.at(0) - 1,
                        reinterpret_cast<const int64_t*>(offsets.bytes.data())[offsets.shape[0] - 1],
                        reinterpret_cast<const int64_t*>(offsets.bytes.data()),
                        about.at("global_valid_tokens"),
                        about.at("global_valid_sequences"),
                        about.at("padded_length")};
  Inputs inputs(loss, recording);
  const LossValue value = loss.compute(context, shape, inputs.plain, inputs.outputs, inputs.grads);
  const double recorded = *reinterpret_cast<const double*>(need(recording, "loss", where).bytes.data());
  Json metrics = Json::object();
  for (const LossMetric& metric : value.metrics) metrics[metric.name] = {metric.value, metric.weight};
  return {{"file", where},
          {"step", context.step},
          {"sequences", shape.num_sequences},
          {"tokens", shape.num_tokens},
          {"loss", value.loss},
          {"recorded_loss", recorded},
          {"largest_gradient_difference", worst_difference(inputs, recording)},
          {"metrics", metrics}};
}

std::string line_of(const Json& result) {
  std::string text = fmt::format(
      "{}: step {}, {} sequences, {} tokens: loss {:.9g} (recorded {:.9g}), largest difference of a gradient {:.3g}",
      result["file"].get<std::string>(), result["step"].get<int64_t>(), result["sequences"].get<int64_t>(),
      result["tokens"].get<int64_t>(), result["loss"].get<double>(), result["recorded_loss"].get<double>(),
      result["largest_gradient_difference"].get<double>());
  for (const auto& [name, entry] : result["metrics"].items())
    text += fmt::format("; {} {:.6g} of {:.6g}", name, entry[0].get<double>(), entry[1].get<double>());
  return text;
}

// Loads the loss `name` under the recorded loss_fn section (its plugin_config only if the plugin is the one that was
// recorded), with `plugin_config` over it, and calls it on every file. Prints loss, metrics and how far loss and
// gradients are from the recorded ones; one JSON object a file with `json`. Returns 0.
int replay_calls(const Options& options, const std::string& name, const std::vector<std::filesystem::path>& files,
                 const Json& plugin_config, bool json, std::ostream& out) {
  Registry registry(options, nullptr);
  const LoadedPlugin& plugin =
      registry.load(Kind::loss, name.find('/') == std::string::npos ? name : std::filesystem::absolute(name).string());
  for (const std::filesystem::path& file : files) {
    const Json result = replay(plugin, file, plugin_config);
    out << (json ? json_text(with_named_infinities(result)) : line_of(result)) << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace hexad::plugin

namespace hexad::cli {
namespace {

struct ReplayArguments {
  std::string name;
  std::vector<std::string> files, paths, keys;
  bool json = false;
};

}  // namespace

void add_plugin_replay(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command =
      app.add_subcommand("replay", "Put recorded calls of a loss (plugins.record_dir) to a loss plugin");
  command->add_option("PLUGIN", arguments->name, "Name of a loss plugin, or its .so or manifest")->required();
  command->add_option("RECORDING", arguments->files, "Files of plugins.record_dir")->required();
  command->add_option("--set", arguments->keys, "KEY=VALUE of its plugin_config")->allow_extra_args(false);
  command->add_option("--path", arguments->paths, "Directory to search first, as plugins.paths does")
      ->allow_extra_args(false);
  command->add_flag("--json", arguments->json, "One JSON object a file");
  command->callback([arguments, &exit_code] {
    plugin::Options options;
    options.paths.assign(arguments->paths.begin(), arguments->paths.end());
    nlohmann::ordered_json config = nlohmann::ordered_json::object();
    for (const std::string& key : arguments->keys) set_plugin_key(config, key);
    const std::vector<std::filesystem::path> files(arguments->files.begin(), arguments->files.end());
    exit_code = plugin::replay_calls(options, arguments->name, files, config, arguments->json, std::cout);
  });
}

}  // namespace hexad::cli
