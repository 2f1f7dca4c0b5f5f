// The generator's other half: weights, pause, sleep.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plugins/vllm_bridge/generator.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// A false answer matters only where no salt keeps old prefixes apart: a running request holds its blocks.
bool was_reset(const Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  return answer.ok() && (!json.is_object() || json.value("success", Json(true)) == true);
}

}  // namespace

// Whatever is thrown meanwhile, servers go on at its end.
class Generator::Halt {
 public:
  Halt(Generator& generator, bool needed) : generator_(generator), needed_(needed) {
    if (needed_) generator_.halt();
  }
  ~Halt() {
    if (needed_) generator_.unhalt();
  }
  Halt(const Halt&) = delete;
  Halt& operator=(const Halt&) = delete;

 private:
  Generator& generator_;
  bool needed_;
};

void Generator::halt() {
  loop_.run([&] { fleet_.hold(); });
  std::vector<Target> targets = control_.up();
  for (const Target& target : targets) {
    if (!target.dev_mode) loop_.run([&] { fleet_.recall(target.index); });
  }
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post_or_fail(targets, "/pause?mode=keep&clear_cache=false", "{}", settings_.deadlines.control);
}

void Generator::unhalt() {
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post_or_fail(targets, "/resume", "{}", settings_.deadlines.control);
  loop_.run([&] { fleet_.release(); });
}

void Generator::pause(const sdk::Call&) {
  if (!std::exchange(paused_, true)) halt();
}

void Generator::resume(const sdk::Call&) {
  if (std::exchange(paused_, false)) unhalt();
}

void Generator::sleep(const sdk::Call& call, int32_t level) {
  if (level != 1 && level != 2) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "sleep: got level %d, wanted 1 (free the KV cache) or 2 (free the weights too)",
              level);
  }
  if (std::exchange(asleep_, true)) return;
  const bool held = std::exchange(without_weights_, without_weights_ || level == 2);  // by a sleep before
  loop_.run([&] {
    if (!held) fleet_.hold();
    for (const auto& server : fleet_.servers()) fleet_.recall(server->index);
  });
  std::vector<Target> targets = control_.up();
  const bool all = std::all_of(targets.begin(), targets.end(), [](const Target& t) { return t.sleep_mode; });
  if (!all) call.log(HEXAD_LOG_DEBUG, "a vLLM server has no sleep mode: it keeps its memory while the policy computes");
  std::erase_if(targets, [](const Target& target) { return !target.sleep_mode; });
  control_.post_or_fail(targets, fmt::format("/sleep?level={}", level), "{}", settings_.deadlines.control);
}

void Generator::wake(const sdk::Call&) {
  if (!std::exchange(asleep_, false)) return;
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.sleep_mode; });
  control_.post_or_fail(targets, "/wake_up", "{}", settings_.deadlines.control);
  if (!without_weights_) loop_.run([&] { fleet_.release(); });  // else the next update does
}

void Generator::flush_cache(const sdk::Call&) {
  loop_.run([&] { fleet_.forget_prefixes(); });
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post(targets, "/reset_prefix_cache", "{}", settings_.deadlines.control);
}

void Generator::update_begin(const sdk::Call&, int64_t version) {
  for (const Target& target : control_.up()) {
    if (target.dev_mode) continue;
    sdk::fail(HEXAD_FAILED_PRECONDITION,
              "weight update: %s has no development endpoints, through which weights are loaded. Start it with "
              "VLLM_SERVER_DEV_MODE=1 in its environment, on an address that only this run can reach",
              target.label.c_str());
  }
  checkpoint_.reset();
  checkpoint_.emplace(work_.path() / fmt::format("version_{}", version), settings_.model_name);
  update_failure_.clear();
  update_version_ = version;
  updating_ = true;
}

void Generator::update_bucket(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (!checkpoint_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_bucket without update_begin");
  try {
    checkpoint_->add(call, bucket);
  } catch (const std::exception& error) {
    update_failure_ = error.what();
    throw;
  }
}

void Generator::update_end(const sdk::Call& call, bool commit) {
  if (!checkpoint_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_end without update_begin");
  const struct End {
    Generator& self;
    ~End() { self.checkpoint_.reset(), self.updating_ = false; }
  } end{*this};
  if (!commit) return;
  if (!update_failure_.empty()) {
    sdk::fail(HEXAD_FAILED_PRECONDITION, "the weight update cannot be committed, a bucket of it was refused: %s",
              update_failure_.c_str());
  }
  publish(call, checkpoint_->finish());
}

// Every server of `targets` loads the folder; those that fail leave it.
void Generator::load(std::vector<Target>& targets, const fs::path& dir) {
  const Json body = {{"method", "reload_weights"}, {"kwargs", {{"weights_path", dir.string()}}}};
  control_.post_or_fail(targets, "/collective_rpc", body.dump(), settings_.deadlines.control);
  const std::vector<Answer> answers = control_.post(targets, "/reset_prefix_cache", "{}", settings_.deadlines.control);
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (was_reset(answers[i]) || (answers[i].ok() && targets[i].cache_salt)) {
      left.push_back(targets[i]);
    } else {
      loop_.run([&] { fleet_.fail(targets[i].index, "did not reset its prefix cache after a weight update"); });
    }
  }
  targets = std::move(left);
}

// The latest two stay, as a server may be loading the last but one, and what a server is starting from.
void Generator::remove_old_dirs() {
  std::vector<fs::path> left;
  for (size_t i = 0; i < dirs_.size(); ++i) {
    const std::string dir = dirs_[i].string();
    if (i + 2 >= dirs_.size() || loop_.run([&] { return nursery_.starts_from(dir); })) {
      left.push_back(dirs_[i]);
      continue;
    }
    std::error_code ignored;
    fs::remove_all(dirs_[i], ignored);
  }
  dirs_ = std::move(left);
}

void Generator::put_in_force(const sdk::Call& call, const std::vector<Target>& holders, const fs::path& dir) {
  loop_.run([&] {
    for (const Target& target : holders) fleet_.holds(target.index, target.incarnation, update_version_);
    fleet_.set_version(update_version_, dir.string());
    if (spawns_) nursery_.start(dir.string());
  });
  has_weights_ = true;
  std::erase(dirs_, dir);
  dirs_.push_back(dir);
  remove_old_dirs();
  // Of sleep's hold; a pause's is another.
  if (std::exchange(without_weights_, false) && !asleep_) loop_.run([&] { fleet_.release(); });
  call.log(HEXAD_LOG_DEBUG,
           fmt::format("weights of version {} are in force on {} vLLM servers", update_version_, holders.size()));
}

// Has the servers that are up load a folder, and puts it in force unless all of them fail.
void Generator::publish(const sdk::Call& call, const fs::path& dir) {
  const Halt halted(*this, !paused_ && !asleep_ && !without_weights_);
  std::vector<Target> targets = control_.up();
  const size_t asked = targets.size();
  load(targets, dir);
  // One that is not up yet loads them before it takes requests.
  if (!targets.empty() || asked == 0) return put_in_force(call, targets, dir);
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  std::string errors = loop_.run([&] {
    std::string text;
    for (const auto& server : fleet_.servers()) text += " " + server->label() + ": " + server->last_error + ";";
    return text;
  });
  throw sdk::Error(HEXAD_UNAVAILABLE,
                   "weight update: no vLLM server took the weights:" + errors + " those before stay in force");
}

}  // namespace hexad::vllm
