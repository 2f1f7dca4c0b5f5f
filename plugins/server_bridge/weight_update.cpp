#include "plugins/server_bridge/weight_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hexad::bridge {
namespace {

namespace fs = std::filesystem;

}  // namespace

// The channel of this update; null: it goes over disk. A model without weights begins there: its servers start from
// what is written.
Channel* WeightUpdate::choose_channel(const sdk::Call& call) {
  const std::string& wanted = settings_.transport;
  const bool possible = !wanted.empty() || call.device().device_type == kDLCUDA;
  if (wanted == "disk" || !servers_.has_weights() || !possible) return nullptr;
  servers_.await_first_starts(call);
  const bool direct = !wanted.empty() || channel_;  // servers may see no disk of ours
  if (direct) servers_.await_any(call);
  const std::vector<Target> targets = control_.takes_weights();
  if (targets.empty() && direct) fail_update();
  std::string backend = wanted;
  for (const Target& target : targets) {
    const std::string& offered = target.facts.weight_transfer;
    if (backend.empty()) backend = offered;
    if (!backend.empty() && dialect_.takes(target.facts, backend)) continue;
    if (wanted.empty()) return nullptr;
    sdk::fail(HEXAD_FAILED_PRECONDITION,
              "policy.generation.refit_transport: got '%s', and %s (%s %s) offers %s. %s, or leave the key out",
              wanted.c_str(), target.label.c_str(), names_.engine, target.facts.version.c_str(),
              offered.empty() ? "no weight transfer" : offered.c_str(), dialect_.wants_transport(wanted).c_str());
  }
  if (targets.empty()) return nullptr;
  if (!channel_ || channel_->backend() != backend) channel_ = dialect_.channel(backend, control_);
  return channel_.get();
}

// Those that the channel reaches, as they are once the others stand still: one that failed at the pause is none.
std::vector<Target> WeightUpdate::reached_by(const Channel& channel) {
  std::vector<Target> targets = control_.takes_weights();
  std::erase_if(targets, [&](const Target& target) { return !dialect_.takes(target.facts, channel.backend()); });
  return targets;
}

void WeightUpdate::begin(const sdk::Call& call, int64_t version) {
  for (const Target& target : control_.up()) {
    if (target.facts.updates) continue;
    sdk::fail(HEXAD_FAILED_PRECONDITION, "weight update: %s %s", target.label.c_str(),
              dialect_.wants_updates().c_str());
  }
  direct_.reset();
  checkpoint_.reset();
  failure_.clear();
  if (Channel* const channel = choose_channel(call)) {
    direct_.reset(new DirectUpdate{ServerPool::Halt(servers_), Delivery(call, version, dialect_, *channel, control_,
                                                                        reached_by(*channel), settings_.deadlines)});
  } else {
    checkpoint_.emplace(work_.weights(version), settings_.model_name, settings_.deadlines.control,
                        fmt::format("policy.generation.{}.refit_dir", names_.section));
  }
  if (const std::string way = direct_ ? channel_->backend() : "disk"; std::exchange(way_, way) != way)
    call.log(HEXAD_LOG_INFO, fmt::format("weights reach the {} servers by {}", names_.engine, way));
  version_ = version;
  servers_.offer(version);
  under_way_ = true;
}

void WeightUpdate::add(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (!checkpoint_ && !direct_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_bucket without update_begin");
  try {
    const std::unique_ptr<FormedBucket> formed = dialect_.formed(call, bucket);
    const hexad_weight_list& list = formed ? formed->list() : bucket;
    direct_ ? direct_->delivery.add(call, list) : checkpoint_->add(call, list);
  } catch (const std::exception& error) {
    failure_ = error.what();
    throw;
  }
}

void WeightUpdate::end(const sdk::Call& call, bool commit) {
  if (!checkpoint_ && !direct_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_end without update_begin");
  const struct End {
    WeightUpdate& self;
    ~End() { self.checkpoint_.reset(), self.direct_.reset(), self.under_way_ = false; }
  } end{*this};
  if (!commit) return;
  if (!failure_.empty()) {
    sdk::fail(HEXAD_FAILED_PRECONDITION, "the weight update cannot be committed, a bucket of it was refused: %s",
              failure_.c_str());
  }
  if (!direct_) return publish(call, checkpoint_->finish(call));
  std::vector<Target> targets = direct_->delivery.finish();
  drop_prefixes(targets);
  if (targets.empty()) fail_update();
  put_in_force(call, targets, std::nullopt);
}

// Every server of `targets` loads the folder; those that fail leave it.
void WeightUpdate::load(std::vector<Target>& targets, const fs::path& dir) {
  control_.update(targets, dialect_.load(dir.string(), version_), settings_.deadlines.control);
  drop_prefixes(targets);
}

// Those that keep prefixes of other weights, and cannot be told them apart, have failed.
void WeightUpdate::drop_prefixes(std::vector<Target>& targets) {
  const Post flush = dialect_.flush();
  const std::vector<Answer> answers = control_.post(targets, flush, settings_.deadlines.control);
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (dialect_.flushed(targets[i].facts, answers[i])) {
      left.push_back(targets[i]);
    } else {
      const std::string why = answers[i].ok() ? answers[i].body : answers[i].trouble();
      control_.spoil(targets[i], "failed at " + flush.path + " after a weight update: " + why);
    }
  }
  targets = std::move(left);
}

// `dir`: where a copy lies, if there is one.
void WeightUpdate::put_in_force(const sdk::Call& call, const std::vector<Target>& holders,
                                const std::optional<fs::path>& dir) {
  servers_.put_in_force(version_, holders, dir);
  if (dir) work_.keep(*dir, [&](const fs::path& old) { return servers_.starts_from(old); });
  call.log(HEXAD_LOG_DEBUG,
           fmt::format("weights of version {} are in force on {} {} servers", version_, holders.size(), names_.engine));
}

// Has the servers load a folder, and puts it in force. If all of them fail at it, those that come back are asked again;
// if nobody is there, whoever comes loads it before he takes requests.
void WeightUpdate::publish(const sdk::Call& call, const fs::path& dir) {
  constexpr int kAttempts = 3;
  const ServerPool::Halt halted(servers_);
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    if (attempt > 1) servers_.await_any(call);
    std::vector<Target> targets = control_.takes_weights();
    const size_t asked = targets.size();
    load(targets, dir);
    if (!targets.empty() || asked == 0) return put_in_force(call, targets, dir);
    call.log(HEXAD_LOG_WARN,
             fmt::format("weight update: no {} server took the weights of version {}:{} attempt {} of {}",
                         names_.engine, version_, servers_.last_errors(), attempt, kAttempts));
  }
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  fail_update();
}

void WeightUpdate::fail_update() {
  const bool copy = servers_.has_copy();
  throw sdk::Error(HEXAD_UNAVAILABLE, fmt::format("weight update: no {} server took the weights:{}", names_.engine,
                                                  servers_.last_errors()) +
                                          (copy ? " those before stay in force" : " there is no copy of those before"));
}

}  // namespace hexad::bridge
