#include "app/verify/declared_keys.hpp"

#include <deque>

#include "app/verify/declared_reads.hpp"
#include "core/config/declaration/section_defaults.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "sdk/verify/instance.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

class RecordingConfig : public verify::Config {
 public:
  RecordingConfig(const std::string& path, Json section) : config_(path, std::move(section)) { config_.record_reads(); }
  const hexad_config* handle() const override { return config_.handle(); }
  const PluginConfig& config() const { return config_; }

 private:
  PluginConfig config_;
};

Json with_folders(Json value, const DeclaredCase& tested) {
  if (value.is_structured()) {
    for (Json& each : value) each = with_folders(std::move(each), tested);
  }
  if (!value.is_string()) return value;
  return replaced(replaced(value.get<std::string>(), "{dir}", tested.folder.string()), "{models}",
                  tested.models.string());
}

// One message for all of a rule, in the order of the first.
class Rules {
 public:
  void add(const std::string& rule, bool warning, const std::string& text) {
    const auto known = std::ranges::find(all_, rule, &verify::Finding::check);
    if (known == all_.end())
      all_.push_back({warning, rule, text});
    else
      known->text += "; " + text;
  }
  // Each of `names` that has found nothing is a check that holds.
  void report(std::initializer_list<const char*> names, verify::Findings& findings) const {
    for (const char* name : names) {
      const auto found = std::ranges::find(all_, name, &verify::Finding::check);
      if (found != all_.end() && found->warning)
        findings.prefer(false, name, found->text);
      else
        findings.expect(found == all_.end(), name, found == all_.end() ? "" : found->text);
    }
  }

 private:
  std::vector<verify::Finding> all_;
};

constexpr const char* kVerifyConfig = "verify_configs";

// What create answers under this configuration; "" if it made an instance.
std::string problem_of_create(const verify::Subject& subject, const RecordingConfig& config) {
  const auto call = subject.engine->call();
  void* self = nullptr;
  const hexad_code code = verify::create(subject, subject.engine->host(), *call, config, &self);
  if (code != HEXAD_OK) return "create failed: " + call->text();
  if (!self) return "create returned OK and no instance";
  verify::destroy(subject, self);
  return "";
}

}  // namespace

void check_declared_keys(const verify::Subject& subject, const DeclaredCase& tested, verify::Findings& findings) {
  Rules rules;
  std::deque<RecordingConfig> used;
  bool all_created = true;
  const auto create_with = [&](const Json& section) {
    used.emplace_back(tested.section_path, config::filled_section(tested.declaration, section));
    const std::string problem = problem_of_create(subject, used.back());
    all_created &= problem.empty();
    return problem;
  };
  create_with(tested.section);  // if that fails, the level has said so
  for (const Json& config : tested.declaration.verify_configs) {
    Json section = tested.section;
    std::string wrong;
    for (const auto& [path, value] : config.items()) {
      if (!config::set_json_at(section, path, with_folders(value, tested))) wrong = path;
    }
    all_created &= wrong.empty();
    const std::string problem =
        wrong.empty() ? create_with(section) : fmt::format("{} stands below a key that is no map", wrong);
    if (!problem.empty()) rules.add(kVerifyConfig, false, fmt::format("{}: {}", json_text(config), problem));
  }
  std::vector<const PluginConfig*> creates;
  for (const RecordingConfig& config : used) creates.push_back(&config.config());
  // After a create that failed some reads are missing.
  const Unread unread = !all_created ? Unread::ignore : tested.own ? Unread::fail : Unread::warn;
  for (const DeclaredFinding& found : check_reads(tested.declaration, creates, unread))
    rules.add(found.rule, found.warning, found.text);
  rules.report({kVerifyConfig, kUndeclaredKey, kOtherDefault, kWholeSection, kUnreadKey}, findings);
}

}  // namespace hexad::plugin
