#include <algorithm>

#include <fmt/format.h>

#include "app/console/lines.hpp"
#include "lib/base/text.hpp"

namespace hexad::console {
namespace {

using algorithm::Started;
using Reply = cluster::protocol::Start::Reply;

std::string labelled(std::string_view label, const std::string& text) { return fmt::format("{:9} {}", label, text); }

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

// "4 x NVIDIA H100 80GB HBM3"; "" where no rank has a card.
std::string cards_of(const std::vector<Reply>& ranks) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const Reply& rank : ranks) {
    if (rank.card.empty()) continue;
    const auto known = std::ranges::find(kinds, rank.card, &std::pair<std::string, int>::first);
    if (known == kinds.end())
      kinds.emplace_back(rank.card, 1);
    else
      ++known->second;
  }
  std::vector<std::string> texts;
  for (const auto& [name, count] : kinds) texts.push_back(count == 1 ? name : fmt::format("{} x {}", count, name));
  return joined(texts);
}

std::string device_line(const Started& run) {
  const bool is_cpu = run.ranks.at(0).device == "cpu";
  std::string text =
      fmt::format("{} ({}", is_cpu ? "cpu" : "cuda", counted(static_cast<int64_t>(run.ranks.size()), "rank"));
  if (run.config.cluster.num_nodes > 1) text += fmt::format(" on {} hosts", run.config.cluster.num_nodes);
  if (is_cpu && run.config.cluster.device == "auto")
    text += "; cluster.device auto has found no GPU that this build can use";
  if (const std::string cards = cards_of(run.ranks); !cards.empty()) text += ": " + cards;
  return labelled("device", text + ")");
}

// "0.1 M", "134.5 M", "8.03 B".
std::string size_text(int64_t parameters) {
  const auto number = static_cast<double>(parameters);
  if (parameters < 1'000'000) return grouped(parameters);
  return number < 1e9 ? fmt::format("{:.1f} M", number / 1e6) : fmt::format("{:.2f} B", number / 1e9);
}

std::string model_line(const Started& run) {
  const config::PolicyConfig& policy = run.config.policy;
  const auto& backend = run.ranks.at(0).backend;
  std::string facts = policy.precision;
  if (backend && backend->num_parameters > 0) facts = size_text(backend->num_parameters) + " parameters, " + facts;
  return labelled("model", fmt::format("{} ({})", policy.model_name, facts));
}

const char* rows_of(config::Algorithm algorithm) {
  switch (algorithm) {
    case config::Algorithm::grpo: return "prompt";
    case config::Algorithm::sft: return "conversation";
    case config::Algorithm::dpo:
    case config::Algorithm::rm: return "pair";
  }
  return "row";
}

// The files and the columns that the configuration names, and rows: data      train.jsonl (openai_format, output_key:
// solution): 7,473 prompts, 200 to validate on.
void add_data_lines(const Started& run, std::vector<std::string>& lines) {
  std::vector<std::string> texts;
  for (const config::DatasetConfig& data : run.config.data.train) {
    std::string read = data.dataset_name;
    for (const auto& [key, value] : data.spec.items())
      if (key.ends_with("_key") && value.is_string()) read += fmt::format(", {}: {}", key, value.get<std::string>());
    texts.push_back(data.data_path ? fmt::format("{} ({})", *data.data_path, read) : read);
  }
  std::string rows = counted(run.rows, rows_of(run.config.algorithm));
  if (run.validation_rows > 0) rows += fmt::format(", {} to validate on", grouped(run.validation_rows));
  if (texts.size() == 1)
    texts[0] += ": " + rows;
  else
    texts.push_back("in all " + rows);
  for (const std::string& text : texts) lines.push_back(labelled("data", text));
}

std::string plugin_line(const char* role, const cluster::protocol::PluginLine& plugin,
                        const std::filesystem::path& own) {
  const std::filesystem::path file = plugin.path;
  std::string text = fmt::format("{} {}", plugin.name, plugin.version);
  if (file.parent_path() != own) text += fmt::format(" ({})", plugin.path);
  return labelled(role, text);
}

// "0 to 3 (cuda:0 to cuda:3)".
std::string ranks_text(const Started& run, const cluster::RankRange& ranks) {
  const auto span = [](const auto& first, const auto& last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
  };
  std::string text = span(ranks.first, ranks.end() - 1);
  const Reply &first = run.ranks.at(static_cast<size_t>(ranks.first)),
              &last = run.ranks.at(static_cast<size_t>(ranks.end() - 1));
  if (first.device != "cpu" && run.config.cluster.num_nodes == 1)
    text += fmt::format(" ({})", span(first.device, last.device));
  return text;
}

// A parallel size of a backend's section, under NeMo-RL's names. `splits`: it cuts a copy of the model, so that other
// ranks hold other copies.
struct Size {
  const char* key;
  const char* word;
  bool splits;
};
constexpr Size kSizes[] = {{"tensor_model_parallel_size", "TP", true},   {"tensor_parallel_size", "TP", true},
                           {"pipeline_model_parallel_size", "PP", true}, {"context_parallel_size", "CP", true},
                           {"expert_model_parallel_size", "EP", false},  {"expert_parallel_size", "EP", false},
                           {"expert_tensor_parallel_size", "ETP", false}};

// "TP 2, PP 2, DP 2": sizes above 1. The backend says how many copies there are, and not how it cuts one: that stands
// in the section whose sizes come to the ranks. Of two such the enabled one.
std::string layout_text(const Started& run) {
  const auto& backend = run.ranks.at(0).backend;
  const int64_t copies = backend ? backend->dp_size : 1;
  std::string text;
  for (const auto& [block, section] : run.resolved.at("policy").entries()) {
    if (!section.is_map() || !block.ends_with("_cfg")) continue;
    int64_t ranks = copies;
    std::vector<std::string> sizes;
    for (const Size& size : kSizes) {
      const int64_t value = section.has(size.key) && section.at(size.key).is_int() ? section.as_int(size.key) : 1;
      if (size.splits) ranks *= value;
      if (value > 1) sizes.push_back(fmt::format("{} {}", size.word, value));
    }
    if (ranks != run.placement.trainers.count) continue;
    const bool enabled = section.has("enabled") && section.at("enabled").is_bool() && section.as_bool("enabled");
    if (text.empty() || enabled) text = joined(sizes);
  }
  if (copies > 1) text += fmt::format("{}DP {}", text.empty() ? "" : ", ", copies);
  return text;
}

// Which ranks do what. One rank does all: nothing is to be said.
std::string ranks_line(const Started& run) {
  const cluster::Placement& placement = run.placement;
  if (run.ranks.size() < 2) return "";
  std::string layout = layout_text(run);
  if (!layout.empty()) layout = ", " + layout;
  const std::string trainers = ranks_text(run, placement.trainers);
  if (run.config.algorithm != config::Algorithm::grpo) return labelled("ranks", trainers + " train" + layout);
  std::string groups;
  if (placement.replica_size > 1)
    groups = fmt::format(" in {} of {} ranks", counted(placement.replicas(), "group"), placement.replica_size);
  if (!placement.apart())
    return labelled("ranks", fmt::format("{} train{}, and generate by turns{}", trainers, layout, groups));
  return labelled("ranks", fmt::format("{} train{}; {} generate{}", trainers, layout,
                                       ranks_text(run, placement.generators), groups));
}

}  // namespace

std::vector<std::string> start_lines(const Started& run, const std::filesystem::path& own_plugins) {
  std::vector<std::string> lines = {device_line(run), model_line(run)};
  add_data_lines(run, lines);
  if (const std::string ranks = ranks_line(run); !ranks.empty()) lines.push_back(ranks);
  lines.push_back(plugin_line("backend", run.ranks.at(0).backend.value(), own_plugins));
  lines.push_back(plugin_line("loss", run.ranks.at(0).loss.value(), own_plugins));
  const Reply& generator = run.ranks.at(static_cast<size_t>(run.placement.generators.first));
  if (generator.generator) lines.push_back(plugin_line("generator", *generator.generator, own_plugins));
  lines.push_back(labelled("log", run.log_dir));
  return lines;
}

}  // namespace hexad::console
