// The generator's weights.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

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

// Of a first start alone: one that is down, or comes back, takes the next update that finds it there.
void Generator::await_servers(const sdk::Call& call) {
  bool told = false;
  while (control_.any_on_its_first_start() && Clock::now() < first_starts_end_) {
    if (call.cancelled()) sdk::fail(HEXAD_CANCELLED, "the weight update was cancelled while vLLM servers start");
    if (!std::exchange(told, true)) call.log(HEXAD_LOG_INFO, "the first weight update waits for vLLM servers to start");
    std::this_thread::sleep_for(Milliseconds(50));
  }
}

// The channel of this update; null: it goes over disk. A model without weights begins there: its servers start from what
// is written.
Channel* Generator::choose_channel(const sdk::Call& call) {
  const std::string& wanted = settings_.transport;
  if (wanted == "disk" || !has_weights_ || call.device().device_type != kDLCUDA) return nullptr;
  await_servers(call);
  const bool direct = !wanted.empty() || channel_;  // servers may see no disk of ours
  if (direct) wait_for_server(call);
  const std::vector<Target> targets = control_.takes_weights();
  if (targets.empty() && direct) fail_update();
  std::string backend = wanted;
  for (const Target& target : targets) {
    const std::string offered = target.can.weight_transfer ? target.weight_transfer : "";
    if (backend.empty()) backend = offered;
    if (offered == backend && (offered == "ipc" || offered == "nccl")) continue;
    if (wanted.empty()) return nullptr;
    sdk::fail(
        HEXAD_FAILED_PRECONDITION,
        "policy.generation.refit_transport: got '%s', and %s (vLLM %s) offers %s. Start it, vLLM 0.24 or newer, with "
        "--weight-transfer-config '{\"backend\":\"%s\"}', or leave the key out",
        wanted.c_str(), target.label.c_str(), target.can.version.c_str(),
        offered.empty() ? "no weight transfer" : offered.c_str(), wanted.c_str());
  }
  if (targets.empty()) return nullptr;
  if (!channel_ || channel_->backend() != backend) channel_ = make_channel(backend, control_, settings_);
  return channel_.get();
}

// Those that the channel reaches, as they are once the others stand still: one that failed at the pause is none.
std::vector<Target> Generator::reached_by(const Channel& channel) {
  std::vector<Target> targets = control_.takes_weights();
  std::erase_if(targets, [&](const Target& target) { return target.weight_transfer != channel.backend(); });
  return targets;
}

void Generator::update_begin(const sdk::Call& call, int64_t version) {
  for (const Target& target : control_.up()) {
    if (target.dev_mode) continue;
    sdk::fail(HEXAD_FAILED_PRECONDITION,
              "weight update: %s has no development endpoints, through which weights are loaded. Start it with "
              "VLLM_SERVER_DEV_MODE=1 in its environment, on an address that only this run can reach",
              target.label.c_str());
  }
  direct_.reset();
  checkpoint_.reset();
  update_failure_.clear();
  if (Channel* const channel = choose_channel(call)) {
    direct_.reset(
        new DirectUpdate{{*this, runs()}, {call, *channel, control_, reached_by(*channel), settings_.deadlines}});
  } else {
    checkpoint_.emplace(work_.path() / fmt::format("version_{}", version), settings_.model_name,
                        settings_.deadlines.control);
  }
  if (const std::string way = direct_ ? channel_->backend() : "disk"; std::exchange(way_, way) != way)
    call.log(HEXAD_LOG_INFO, "weights reach the vLLM servers by " + way);
  update_version_ = version;
  updating_ = true;
}

void Generator::update_bucket(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (!checkpoint_ && !direct_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_bucket without update_begin");
  try {
    direct_ ? direct_->delivery.add(call, bucket) : checkpoint_->add(call, bucket);
  } catch (const std::exception& error) {
    update_failure_ = error.what();
    throw;
  }
}

void Generator::update_end(const sdk::Call& call, bool commit) {
  if (!checkpoint_ && !direct_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_end without update_begin");
  const struct End {
    Generator& self;
    ~End() { self.checkpoint_.reset(), self.direct_.reset(), self.updating_ = false; }
  } end{*this};
  if (!commit) return;
  if (!update_failure_.empty()) {
    sdk::fail(HEXAD_FAILED_PRECONDITION, "the weight update cannot be committed, a bucket of it was refused: %s",
              update_failure_.c_str());
  }
  if (!direct_) return publish(call, checkpoint_->finish(call));
  std::vector<Target> targets = direct_->delivery.finish();
  drop_prefixes(targets);
  if (targets.empty()) fail_update();
  put_in_force(call, targets, std::nullopt);
}

// Every server of `targets` loads the folder; those that fail leave it.
void Generator::load(std::vector<Target>& targets, const fs::path& dir) {
  const Json body = {{"method", "reload_weights"}, {"kwargs", {{"weights_path", dir.string()}}}};
  control_.update(targets, "/collective_rpc", body.dump(), settings_.deadlines.control);
  drop_prefixes(targets);
}

// Those that keep prefixes of other weights, and cannot be told them apart, have failed.
void Generator::drop_prefixes(std::vector<Target>& targets) {
  const std::vector<Answer> answers = control_.post(targets, "/reset_prefix_cache", "{}", settings_.deadlines.control);
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (was_reset(answers[i]) || (answers[i].ok() && targets[i].can.cache_salt)) {
      left.push_back(targets[i]);
    } else {
      const std::string why = answers[i].ok() ? answers[i].body : answers[i].trouble();
      control_.spoil(targets[i], "failed at /reset_prefix_cache after a weight update: " + why);
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

// `dir`: where a copy lies, if there is one.
void Generator::put_in_force(const sdk::Call& call, const std::vector<Target>& holders, std::optional<fs::path> dir) {
  loop_.run([&] {
    for (const Target& target : holders) fleet_.holds(target.index, target.incarnation, update_version_);
    fleet_.set_version(update_version_, dir ? std::optional(dir->string()) : std::nullopt);
    if (dir && spawns_) nursery_.start(dir->string());
  });
  has_weights_ = true;
  if (dir) {
    std::erase(dirs_, *dir);
    dirs_.push_back(*dir);
    remove_old_dirs();
  }
  // Of sleep's hold; a pause's is another.
  if (std::exchange(without_weights_, false) && !asleep_) loop_.run([&] { fleet_.release(); });
  call.log(HEXAD_LOG_DEBUG,
           fmt::format("weights of version {} are in force on {} vLLM servers", update_version_, holders.size()));
}

// Waits until a server takes weights, as long as for an answer.
void Generator::wait_for_server(const sdk::Call& call) {
  const auto deadline = Clock::now() + std::chrono::ceil<Milliseconds>(settings_.deadlines.control);
  while (Clock::now() < deadline && control_.takes_weights().empty()) {
    if (call.cancelled()) sdk::fail(HEXAD_CANCELLED, "the weight update was cancelled while no vLLM server is there");
    std::this_thread::sleep_for(Milliseconds(50));
  }
}

// Has the servers load a folder, and puts it in force. If all of them fail at it, those that come back are asked again; if
// nobody is there, whoever comes loads it before he takes requests.
void Generator::publish(const sdk::Call& call, const fs::path& dir) {
  constexpr int kAttempts = 3;
  const Halt halted(*this, runs());
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    if (attempt > 1) wait_for_server(call);
    std::vector<Target> targets = control_.takes_weights();
    const size_t asked = targets.size();
    load(targets, dir);
    if (!targets.empty() || asked == 0) return put_in_force(call, targets, dir);
    call.log(HEXAD_LOG_WARN,
             fmt::format("weight update: no vLLM server took the weights of version {}:{} attempt {} of "
                         "{}",
                         update_version_, last_errors(), attempt, kAttempts));
  }
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  fail_update();
}

std::string Generator::last_errors() {
  return loop_.run([&] {
    std::string text;
    for (const auto& server : fleet_.servers()) text += " " + server->label() + ": " + server->last_error + ";";
    return text;
  });
}

void Generator::fail_update() {
  const bool copy = loop_.run([&] { return fleet_.has_copy(); });
  throw sdk::Error(HEXAD_UNAVAILABLE, "weight update: no vLLM server took the weights:" + last_errors() +
                                          (copy ? " those before stay in force" : " there is no copy of those before"));
}

}  // namespace hexad::vllm
