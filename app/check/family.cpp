// What config.json and the headers of the weights say, for plugins that load a model by its family: the sentences of
// their workers, before there is one.
#include "app/check/findings.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/model/error.hpp"
#include "lib/weights/headers.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelName = "policy.model_name";

std::optional<model::ModelConfig> read_config(StartFindings& found, const fs::path& folder) {
  try {
    const std::string file = (folder / "config.json").string();
    nlohmann::json config = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) model::fail("{} is not a JSON object", file);
    config.merge_patch(nlohmann::json(found.run.policy.hf_config_overrides));
    model::ModelConfig read = model::parse_model_config(config, file);
    const yaml::Node* head = found.loaded.root.find("policy.reward_model_cfg.enabled");
    if (found.run.algorithm == config::Algorithm::rm || (head && head->is_bool() && head->as_bool()))
      read.reward_head = true, read.tie_word_embeddings = false;
    return read;
  } catch (const std::exception& error) {
    found.error(kModelName, error.what());
    return std::nullopt;
  }
}

void check_weights(StartFindings& found, const fs::path& folder, const model::ModelConfig& config) {
  const bool may_start_random = found.run.policy.random_init_seed.has_value();
  if (!weights::are_in(folder)) {
    if (!may_start_random) found.not_here(kModelName, weights::absent(folder));
    return;
  }
  try {
    weights::open(folder, config, model::weight_table(config));
  } catch (const Error& error) {
    found.error(kModelName, error.what());
  }
}

}  // namespace

void check_family(StartFindings& found) {
  const config::RunFacts& facts = found.loaded.facts;
  const bool trainer = found.start.trains && facts.families;
  if (!found.model || !(trainer || facts.generator_families)) return;
  const fs::path folder = found.model->directory;
  const std::optional<model::ModelConfig> config = read_config(found, folder);
  if (config && (trainer || !found.start.trains)) check_weights(found, folder, *config);
}

}  // namespace hexad::cli
