#include "app/verify/verify.hpp"

#include <chrono>

#include "app/verify/child.hpp"
#include "app/verify/declared_keys.hpp"
#include "app/verify/device.hpp"
#include "app/verify/engine.hpp"
#include "app/verify/file_level.hpp"
#include "core/config/declaration/section_defaults.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/precheck.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/thrown.hpp"
#include "sdk/verify/cuda/engine.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;
using LevelFunction = void (*)(const verify::Subject&, verify::Findings&);

struct Level {
  int number;
  const char* title;
  LevelFunction run;  // null: by kind, or not here
};
constexpr int kCreates = 3;  // the level that declared keys belong to
constexpr Level kLevels[] = {
    {0, "file", nullptr},
    {1, "descriptor", verify::check_descriptor},
    {2, "hosts", verify::check_hosts},
    {3, "lifecycle", verify::check_lifecycle},
    {4, "errors", verify::check_errors},
    {5, "numbers", nullptr},
    {6, "threads", verify::check_threads},
    {7, "cuda", verify::check_cuda},
};

LevelFunction numbers_of(Kind kind) {
  switch (kind) {
    case Kind::backend: return verify::check_backend;
    case Kind::generator: return verify::check_generator;
    case Kind::loss: return verify::check_loss;
    case Kind::environment: return verify::check_environment;
  }
  return nullptr;
}

// What is tested, and with what.
struct Tested {
  const Candidate& candidate;
  const VerifyOptions& options;
  std::optional<config::Declaration> declaration;
  bool own = false;  // of the engine's own folder
};

// In the child: loads the plugin and runs the level. The answer is what the parent reads back.
std::string run_level(const Tested& tested, int number, LevelFunction level, bool on_gpu) {
  const Candidate& candidate = tested.candidate;
  const VerifyOptions& options = tested.options;
  const Kind kind = candidate.manifest->kind;
  const Json section = verify_section(kind, options.plugin_config);
  VerifyEngine engine(verify_section_path(kind),
                      tested.declaration ? config::filled_section(*tested.declaration, section) : section);
  std::unique_ptr<verify::CudaDevice> gpu;
  std::unique_ptr<verify::CudaEngine> gpu_engine;
  verify::Findings findings;
  try {
    if (on_gpu) {
      gpu = std::make_unique<verify::CudaDevice>();
      gpu_engine = std::make_unique<verify::CudaEngine>(engine, *gpu);
    }
    const LoadedPlugin& plugin = Registry(options.plugins, nullptr).load(candidate);
    verify::Subject subject;
    subject.query = plugin.query;
    subject.desc = plugin.desc;
    subject.engine = on_gpu ? static_cast<verify::Engine*>(gpu_engine.get()) : &engine;
    subject.cuda = gpu.get();
    subject.patience_s = options.timeout_s / 5.0;  // so that the level can say what it waited for
    try {
      level(subject, findings);
      if (number == kCreates && tested.declaration) {
        check_declared_keys(subject,
                            {*tested.declaration, verify_section_path(kind), section,
                             candidate.manifest_path.parent_path(), verify_models(), tested.own},
                            findings);
      }
    } catch (const verify::DeviceError& error) {
      findings.expect(false, "device", std::string("it refused, after which nothing more was tried: ") + error.what());
    } catch (...) {
      findings.expect(false, "exception", "one came over the edge of the ABI: " + thrown_text());
    }
  } catch (const Error& error) {
    findings.expect(false, "load", error.what());
  } catch (const verify::DeviceError& error) {
    findings.expect(false, "device", error.what());
  }
  Json answer = {{"checks", findings.checks()}, {"findings", Json::array()}};
  for (const verify::Finding& finding : findings.all())
    answer["findings"].push_back({finding.warning, finding.check, finding.text});
  return json_text(answer);
}

void take_answer(const ChildResult& child, LevelReport& report) {
  const Json answer = try_parse_json<Json>(child.answer);
  if (answer.is_object()) {
    report.checks = answer.at("checks");
    for (const Json& finding : answer.at("findings")) report.findings.push_back({finding[0], finding[1], finding[2]});
  }
  if (child.problem.empty()) return;
  std::string text = child.problem;
  if (!child.output.empty())
    text += "; its last words: " + child.output.substr(0, child.output.find_last_not_of('\n') + 1);
  report.findings.push_back({false, "process", text});
}

// `device`: null if the file may not be loaded.
LevelReport run(const Level& level, const Tested& tested, const VerifyDevice* device) {
  const VerifyOptions& options = tested.options;
  LevelReport report;
  report.level = level.number;
  report.title = level.title;
  const auto begin = std::chrono::steady_clock::now();
  report.not_run = device ? device->not_run(level.number) : "the file may not be loaded";
  if (report.not_run.empty()) {
    const LevelFunction function = level.number == 5 ? numbers_of(tested.candidate.manifest->kind) : level.run;
    const bool on_gpu = device->on_gpu(level.number);
    const auto work = [&] { return run_level(tested, level.number, function, on_gpu); };
    take_answer(run_in_child(work, {options.timeout_s, options.memory_bytes, on_gpu}), report);
    if (level.number == kCreates && tested.candidate.manifest->config.empty()) report.note = "keys are not declared";
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

LevelReport run_file_level(const Candidate& candidate, const VerifyOptions& options, bool& loadable) {
  verify::Findings findings;
  loadable = check_file(candidate, options.plugins, findings);
  LevelReport report;
  report.title = kLevels[0].title;
  report.checks = findings.checks();
  report.findings = findings.all();
  return report;
}

Candidate find_subject(const std::string& name, const Options& options) {
  if (is_plugin_path(name)) return find_path(name);
  const Discovery found = discover(options);
  for (const Candidate& candidate : found.candidates) {
    if (candidate.manifest && candidate.manifest->name == name) return candidate;
  }
  fail_not_found(found, std::nullopt, name);
}

// What the manifest says that an instance needs, and what the caller says, who wins.
Json plugin_config_of(const Candidate& candidate, const Json& given) {
  Json config = Json::object();
  for (std::string key : candidate.manifest->verify_config) {
    const std::string dir = candidate.manifest_path.parent_path().string();
    for (size_t at = 0; (at = key.find("{dir}", at)) != std::string::npos; at += dir.size()) key.replace(at, 5, dir);
    assign(config, key);
  }
  config.merge_patch(given);
  return config;
}

// The declaration in the manifest; one that cannot be read is a finding of level 0.
std::optional<config::Declaration> declaration_of(const Candidate& candidate, LevelReport& file_level) {
  try {
    return config::read_declaration(*candidate.manifest, candidate.manifest_path.string());
  } catch (const Error& error) {
    file_level.findings.push_back({false, "declaration", error.what()});
    return std::nullopt;
  }
}

bool in_own_folder(const Candidate& candidate, const Options& options) {
  if (candidate.trusted) return true;
  const std::filesystem::path folder = candidate.manifest_path.parent_path();
  return std::ranges::any_of(search_path(options), [&](const Folder& own) {
    std::error_code error;
    return own.trusted && std::filesystem::equivalent(own.path, folder, error);
  });
}

Json to_json(const VerifyReport& report) {
  const Candidate& candidate = report.candidate;
  Json json = {{"plugin", candidate.manifest ? candidate.manifest->name : ""},
               {"library", candidate.manifest ? candidate.library().string() : ""},
               {"sha256", candidate.manifest ? candidate.manifest->sha256 : ""},
               {"gpu", report.gpu},
               {"passed", !report.failed()},
               {"levels", Json::array()}};
  for (const LevelReport& level : report.levels) {
    Json entry = {{"level", level.level},     {"title", level.title},     {"checks", level.checks},
                  {"seconds", level.seconds}, {"failed", level.failed()}, {"findings", Json::array()}};
    if (!level.not_run.empty()) entry["not_run"] = level.not_run;
    if (!level.note.empty()) entry["note"] = level.note;
    for (const verify::Finding& finding : level.findings)
      entry["findings"].push_back({{"warning", finding.warning}, {"check", finding.check}, {"text", finding.text}});
    json["levels"].push_back(entry);
  }
  return json;
}

void print(const VerifyReport& report, std::ostream& out) {
  if (const auto& manifest = report.candidate.manifest) {
    out << fmt::format("{} '{}' {} ({}){}\n", kind_name(manifest->kind), one_line(manifest->name),
                       one_line(manifest->version), one_line(report.candidate.library().string()),
                       report.gpu.empty() ? "" : " on " + report.gpu);
  }
  for (const LevelReport& level : report.levels) {
    const std::string state = !level.not_run.empty() ? "not run: " + indented(level.not_run)
                              : level.failed()       ? "FAILED"
                                                     : fmt::format("ok, {} checks", level.checks);
    out << fmt::format("L{} {:<10} {}{}\n", level.level, level.title, state,
                       level.not_run.empty() ? fmt::format(" in {:.1f} s", level.seconds) : "");
    if (!level.note.empty()) out << fmt::format("   {}\n", indented(level.note));
    for (const verify::Finding& finding : level.findings)
      out << fmt::format("   {}{}: {}\n", finding.warning ? "warning: " : "", finding.check, indented(finding.text));
  }
  out << (report.failed()   ? "verify: failed\n"
          : report.warned() ? "verify: passed with warnings\n"
                            : "verify: passed\n");
}

}  // namespace

bool LevelReport::failed() const {
  return std::any_of(findings.begin(), findings.end(), [](const verify::Finding& finding) { return !finding.warning; });
}
bool VerifyReport::failed() const {
  return std::any_of(levels.begin(), levels.end(), [](const LevelReport& level) { return level.failed(); });
}
bool VerifyReport::warned() const {
  return std::any_of(levels.begin(), levels.end(), [](const LevelReport& level) { return !level.findings.empty(); });
}

VerifyReport verify_plugin(const std::string& name, const VerifyOptions& asked) {
  VerifyReport report{find_subject(name, asked.plugins), "", {}};
  bool loadable = true;
  report.levels.push_back(run_file_level(report.candidate, asked, loadable));
  VerifyOptions options = asked;
  Tested tested{report.candidate, options, {}, false};
  if (loadable) tested.declaration = declaration_of(report.candidate, report.levels.front());
  if (loadable) tested.own = in_own_folder(report.candidate, asked.plugins);
  if (loadable) options.plugin_config = plugin_config_of(report.candidate, asked.plugin_config);
  std::optional<VerifyDevice> device;
  if (loadable) device.emplace(options.device, *report.candidate.manifest);
  if (device) report.gpu = device->name();
  for (const Level& level : std::span(kLevels).subspan(1)) {
    const bool wanted = options.levels.empty() ||
                        std::find(options.levels.begin(), options.levels.end(), level.number) != options.levels.end();
    if (!wanted) continue;
    report.levels.push_back(run(level, tested, device ? &*device : nullptr));
  }
  return report;
}

int verify_command(const std::string& name, const VerifyOptions& options, bool json, std::ostream& out) {
  const VerifyReport report = verify_plugin(name, options);
  if (json) {
    out << json_text(to_json(report), 2) << '\n';
  } else {
    print(report, out);
  }
  if (report.failed()) return 1;
  const bool all_ran = std::all_of(report.levels.begin(), report.levels.end(),
                                   [](const LevelReport& level) { return level.level == 7 || level.not_run.empty(); });
  if (options.levels.empty() && all_ran) record_verified(report.candidate.manifest->sha256);
  return options.strict && report.warned() ? 2 : 0;
}

}  // namespace hexad::plugin
