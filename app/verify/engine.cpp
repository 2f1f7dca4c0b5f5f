#include "app/verify/engine.hpp"

#include "lib/base/json.hpp"
#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

class RealCall : public verify::Call {
 public:
  explicit RealCall(const verify::CallOptions& options) : call_(context_, "the plugin under test") {
    context_.step = 1;
    context_.flags = options.flags;
    context_.cancelled = options.cancelled;
    context_.metric = [](const Metric&) {};
    context_.detokenize = [](std::span<const int32_t> ids) {
      std::string text;
      for (int32_t id : ids) text += " " + std::to_string(id);
      return text;
    };
  }
  hexad_call* handle() override { return call_.handle(); }
  hexad_code code() const override { return call_.error_code(); }
  std::string text() const override { return call_.error_text(); }

 private:
  CallContext context_;
  plugin::Call call_;
};

class RealConfig : public verify::Config {
 public:
  RealConfig(const std::string& path, Json section) : config_(path, std::move(section)) {}
  const hexad_config* handle() const override { return config_.handle(); }

 private:
  PluginConfig config_;
};

}  // namespace

VerifyEngine::VerifyEngine(std::string section_path, Json section)
    : section_path_(std::move(section_path)), section_(std::move(section)) {}

const hexad_host* VerifyEngine::host() const { return host_table(nullptr); }

std::unique_ptr<verify::Call> VerifyEngine::call(const verify::CallOptions& options) {
  return std::make_unique<RealCall>(options);
}

std::unique_ptr<verify::Config> VerifyEngine::config(const std::map<std::string, std::string>& changes) {
  Json section = section_;
  for (const auto& [path, value] : changes) {
    std::string pointer = "/plugin_config/" + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    section[Json::json_pointer(pointer)] = parse_json<Json>(value);
  }
  return std::make_unique<RealConfig>(section_path_, std::move(section));
}

std::string verify_section_path(Kind kind) {
  switch (kind) {
    case Kind::backend: return "policy";
    case Kind::generator: return "policy.generation";
    case Kind::loss: return "loss_fn";
    case Kind::environment: return "env.verified";
  }
  return "";
}

std::filesystem::path verify_models() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / "share/hexad/verify";
}

Json verify_section(Kind kind, const Json& plugin_config) {
  Json section = {{"plugin_config", plugin_config}};
  if (kind == Kind::loss || kind == Kind::environment) return section;
  section["model_name"] = (verify_models() / "model").string();
  section["precision"] = "float32";
  section["max_total_sequence_length"] = 64;
  if (kind == Kind::backend) section["optimizer"] = {{"name", "torch.optim.AdamW"}, {"kwargs", {{"lr", 1e-2}}}};
  return section;
}

}  // namespace hexad::plugin
