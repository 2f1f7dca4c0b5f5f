#include "tests/run/faults/faulty_run.hpp"

#include <set>
#include <sstream>

#include "tests/run/faults/attached_servers.hpp"
#include "tests/run/faults/log_check.hpp"
#include "tests/support/toy/program.hpp"

namespace faults {
namespace {

namespace fs = toy::fs;
using first_party::source;
using plugin_test::contains;
using Texts = std::vector<std::string>;

// $1 the size of each disk, $2 the folder that has them, $3 a file for the list of what is left on them, $4 how to
// list.
constexpr const char* kOnOwnDisks =
    "disks=$2; left=$3; list=$4; "
    "for name in refit checkpoints; do mount -t tmpfs -o size=$1 none \"$disks/$name\" || exit 125; done; "
    "shift 4; \"$@\"; code=$?; "
    "cd \"$disks\" && eval \"$list\" > \"$left\"; exit $code";
constexpr const char* kList = "find . -mindepth 2 -maxdepth 3";
constexpr const char* kDiskSize = "16m";
constexpr size_t kShown = 300;        // of a line
constexpr double kLongestStepS = 60;  // the deadlines below, some of them one after another

// unshare's options for a mount of our own; empty: there is none.
const std::string& mount_options() {
  static const std::string options = [] {
    for (const char* tried : {"-m", "-rm"}) {
      const std::string command = std::string("unshare ") + tried + " mount -t tmpfs none /mnt 2> /dev/null";
      if (std::system(command.c_str()) == 0) return std::string(tried);
    }
    return std::string();
  }();
  return options;
}

fs::path server_program(const std::string& engine) {
  return toy::hexad().parent_path().parent_path() / ("tests/faulty_" + engine);
}

// Of "hexad-<run>-<id>-<attempt>".
std::string id_of(const std::string& request) {
  const size_t begin = request.find('-', request.find('-') + 1) + 1;
  return request.substr(begin, request.rfind('-') - begin);
}

// Processes that name this text in their arguments or environment.
Texts processes_with(const std::string& text) {
  Texts found;
  for (const pid_t pid : toy::process_ids()) {
    if (pid == ::getpid() || !toy::alive(pid)) continue;
    const fs::path proc = fs::path("/proc") / std::to_string(pid);
    if (contains(toy::read_text(proc / "cmdline"), text) || contains(toy::read_text(proc / "environ"), text))
      found.push_back(toy::process(pid).command);
  }
  return found;
}

}  // namespace

bool FaultyRun::can_fill_disks() { return !mount_options().empty(); }

bool FaultyRun::has_own_disks() const { return can_fill_disks() && !size_.attached; }

FaultyRun::FaultyRun(const RunSize& size, const Json& schedule) : size_(size), schedule_(schedule) {
  for (const char* folder : {"disks/refit", "disks/checkpoints", "faults"}) fs::create_directories(dir_ / folder);
  dir_.write("faults/schedule.json", schedule.dump());
  const AttachedServers servers(size.attached ? size.servers : 0, server_program(size.engine),
                                size.engine == "vllm" ? "--model" : "--model-path",
                                source() + "/configs/quickstart_model", environment());
  ended_ = toy::Program(command(), arguments(servers.urls()), "").wait(size.timeout_s);
}

Texts FaultyRun::command() const {
  if (!has_own_disks()) return {toy::hexad().string()};
  return {"unshare",
          mount_options(),
          "sh",
          "-c",
          kOnOwnDisks,
          "sh",
          kDiskSize,
          (dir_ / "disks").string(),
          (dir_ / "left").string(),
          kList,
          toy::hexad().string()};
}

std::map<std::string, std::string> FaultyRun::environment() const {
  return {{"HEXAD_FAULTS", (dir_ / "faults").string()},
          {"HEXAD_FAULTS_REFIT_DIR", (dir_ / "disks/refit").string()},
          {"HEXAD_FAULTS_CHECKPOINT_DIR", (dir_ / "disks/checkpoints").string()},
          {"HEXAD_FAULTS_STOP_S", "2.3"},
          {"HEXAD_FAULTS_TOKEN_MS", "3"},
          {"HEXAD_FAULTS_ALWAYS", size_.always}};
}

Texts FaultyRun::arguments(const Texts& urls) const {
  const auto path = [&](const char* name) { return (dir_ / name).string(); };
  // Servers that stay away for good are told by their connections, and what is always wrong by what is said: one that
  // is only slow must not count as such.
  const double patience = size_.attached || !size_.always.empty() ? 10 : 1;
  Json cfg = {{"num_servers", size_.servers},
              {"server_command", {server_program(size_.engine).string()}},
              {"server_log_dir", path("servers")},
              {"refit_dir", path("disks/refit")},
              {"stall_timeout_s", 1.5 * patience},
              {"control_timeout_s", 1.5 * patience},
              {"health_timeout_s", 0.5 * patience},
              {"startup_timeout_s", 6 * patience},
              {"lost_timeout_s", size_.always.empty() ? 40 : 20},
              {"max_attempts", size_.always.empty() ? 20 : 3},
              {"env_vars", environment()}};
  if (size_.attached) cfg["server_urls"] = urls;
  if (size_.engine == "sglang") cfg["stream_interval"] = 4;
  const Json config = {{"defaults", source() + "/configs/quickstart_async.yaml"},
                       {"policy", {{"generation", {{size_.engine + "_cfg", cfg}}}}}};
  const Texts run = {"policy.generation.backend=" + size_.engine,
                     "++policy.generation.ignore_eos=true",
                     "++policy.generation.stop_token_ids=[]",
                     "policy.generation.max_new_tokens=40",
                     "policy.max_total_sequence_length=64",
                     fmt::format("grpo.max_num_steps={}", size_.steps),
                     fmt::format("grpo.num_prompts_per_step={}", size_.prompts),
                     fmt::format("grpo.num_generations_per_prompt={}", size_.generations),
                     fmt::format("policy.train_global_batch_size={}", size_.prompts * size_.generations),
                     "grpo.async_grpo.max_trajectory_age_steps=2",
                     "++cluster.device=cpu",
                     "++grpo.val_at_start=false",
                     "++grpo.val_at_end=false",
                     "++grpo.val_period=0",
                     "checkpointing.save_period=2",
                     "++logger.log_dir=" + path("logs"),
                     "++checkpointing.checkpoint_dir=" + path("disks/checkpoints")};
  Texts all = {"train", dir_.write("run.yaml", config.dump()).string()};
  all.insert(all.end(), run.begin(), run.end());
  all.insert(all.end(), size_.more.begin(), size_.more.end());
  return all;
}

std::vector<Json> FaultyRun::lines_of(const fs::path& file) const {
  std::vector<Json> lines;
  std::ifstream in(dir_ / file);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string FaultyRun::worker_log() const { return toy::read_text(dir_ / "logs/exp_001/worker-1.log"); }

void FaultyRun::check_samples() const {
  INFO(ended_.out, ended_.err, worker_log());
  REQUIRE(ended_.code == 0);
  CHECK(contains(ended_.out + ended_.err, fmt::format("groups: {0} started, {0} trained, 0 dropped", size_.groups())));
  std::map<std::vector<int64_t>, std::string> request_of;  // what servers drew to the end
  for (const Json& line : lines_of("faults/samples.jsonl"))
    request_of[line.at("tokens").get<std::vector<int64_t>>()] = id_of(line.at("request"));
  std::set<std::string> trained;
  for (int step = 1; step <= size_.steps; ++step) {
    CAPTURE(step);
    std::map<std::string, int> of_prompt;
    for (const Json& sample : lines_of(fmt::format("logs/exp_001/train_data_step{}.jsonl", step))) {
      const auto drawn = request_of.find(sample.at("token_ids").get<std::vector<int64_t>>());
      REQUIRE_MESSAGE(drawn != request_of.end(), sample.at("token_ids").dump(), " was drawn by no server");
      CHECK_MESSAGE(trained.insert(drawn->second).second, "request ", drawn->second, " was trained twice");
      const std::string content = sample.at("content"), response = sample.at("response");
      ++of_prompt[content.substr(0, content.size() - response.size())];
    }
    CHECK(of_prompt.size() == static_cast<size_t>(size_.prompts));
    for (const auto& [prompt, count] : of_prompt) CHECK(count == size_.generations);
  }
  CHECK(static_cast<int64_t>(trained.size()) == size_.samples());
}

void FaultyRun::check_refused(const std::string& words) const {
  INFO(ended_.out, ended_.err, worker_log());
  CHECK(ended_.code != 0);
  CHECK_MESSAGE(contains(ended_.out + ended_.err, words), size_.always, ": wanted ", words);
  CHECK(!fs::exists(dir_ / "logs/exp_001/train_data_step1.jsonl"));
}

void FaultyRun::check_times() const {
  int steps = 0;
  for (const Json& line : lines_of("logs/exp_001/metrics.jsonl")) {
    if (!line.contains("timing/train/total_step_time")) continue;
    ++steps;
    CHECK_MESSAGE(line.at("timing/train/total_step_time").get<double>() < kLongestStepS, line.dump());
  }
  CHECK(steps == size_.steps);
}

void FaultyRun::check_faults() const {
  LogCheck log(worker_log(), ended_.out + ended_.err, !size_.attached);
  std::set<std::string> came;
  std::string unanswered;
  std::vector<Json> faults = lines_of("faults/faults.jsonl");
  std::ranges::stable_sort(faults, {}, [](const Json& fault) { return LogCheck::vagueness(fault); });
  for (const Json& fault : faults) {
    const std::string name = fault.at("name"), answer = log.answer_to(fault);
    came.insert(name);
    if (answer.empty()) unanswered += fault.dump() + "\n";
    MESSAGE(name, " -> ", answer.substr(0, kShown));
  }
  for (const Json& fault : schedule_)
    CHECK_MESSAGE(came.contains(fault.at("name")), fault.at("name").get<std::string>(), " has not come");
  CHECK(came.size() == schedule_.size());
  CHECK_MESSAGE(unanswered.empty(), "the log does not say what was done about\n", unanswered, worker_log());
}

void FaultyRun::check_nothing_left() const {
  CHECK(toy::eventually([&] { return processes_with(dir_.path()).empty(); }));
  for (const std::string& command : processes_with(dir_.path())) FAIL_CHECK("still runs: ", command);
  if (!has_own_disks())
    CHECK(std::system(fmt::format("cd '{}' && {} > ../left", (dir_ / "disks").string(), kList).c_str()) == 0);
  std::istringstream left(toy::read_text(dir_ / "left"));
  for (std::string path; std::getline(left, path);) {
    const bool kept = path.starts_with("./checkpoints/step_") ||
                      path == "./checkpoints/latest_checkpoint_status.json" || path == "./checkpoints/.lock";
    CHECK_MESSAGE(kept, path, " is left");
  }
}

}  // namespace faults
