// The model's folder, its tokenizer and chat template.
#include <filesystem>

#include "app/check/findings.hpp"
#include "core/checkpoint/store.hpp"
#include "lib/hub/hub.hpp"

namespace hexad::cli {
namespace {

// A key that begins a message, or else `otherwise`; `message` is what follows.
std::string key_of(std::string& message, std::initializer_list<const char*> keys, const char* otherwise) {
  for (const std::string key : keys) {
    if (!message.starts_with(key + ": ")) continue;
    message.erase(0, key.size() + 2);
    return key;
  }
  return otherwise;
}

std::optional<std::string> find_directory(StartFindings& found) {
  const std::string& name = found.run.policy.model_name;
  try {
    const std::string directory = algorithm::find_model(name, !found.run.policy.random_init_seed);
    checkpoint::require_intact_model(directory);
    return directory;
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string key = key_of(message, {"policy.model_name"}, "policy.model_name");
    if (hub::is_absent(hub::Use::model, name))
      found.not_here(key, message);
    else
      found.error(key, message);
  }
  return std::nullopt;
}

// A tokenizer of the Hub that no cache has, or a folder without one, as of a model whose config.json alone is here.
bool is_elsewhere(const std::string& model_dir, const std::string& tokenizer) {
  std::error_code unreadable;
  const std::filesystem::path folder = tokenizer.empty() ? model_dir : tokenizer;
  if (std::filesystem::is_directory(folder, unreadable)) return !exists(folder / "tokenizer.json", unreadable);
  return hub::is_absent(hub::Use::tokenizer, tokenizer);
}

}  // namespace

void check_model(StartFindings& found) {
  const std::optional<std::string> directory = find_directory(found);
  if (!directory) return;
  const config::TokenizerConfig& tokenizer = found.run.policy.tokenizer;
  try {
    found.model =
        std::make_shared<const algorithm::ModelOnDisk>(*directory, rollout::load_model_text(*directory, tokenizer));
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string key =
        key_of(message, {"policy.tokenizer.name", "policy.tokenizer.chat_template"}, "policy.tokenizer");
    if (is_elsewhere(*directory, tokenizer.name))
      found.not_here(key, message);
    else
      found.error(key, message);
  }
}

}  // namespace hexad::cli
