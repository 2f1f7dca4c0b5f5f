#include "plugins/server_bridge/refit/delivery.hpp"

#include <algorithm>

namespace hexad::bridge {

Delivery::Delivery(const sdk::Call& call, int64_t version, const Dialect& dialect, Channel& channel, Control& control,
                   std::vector<Target> targets, const Deadlines& deadlines)
    : dialect_(dialect), channel_(channel), control_(control), targets_(std::move(targets)), deadlines_(deadlines) {
  channel_.connect(call, version, targets_);
  open_ = targets_;  // a start that nobody answered may come about all the same
  start();
}

// A server refuses it while an update is open that nobody ended, of a trainer before this one: that is ended first.
void Delivery::start() {
  const Post begin = dialect_.begin_update();
  std::vector<Target> begun, refused;
  const std::vector<Answer> answers = control_.post(targets_, begin, deadlines_.control);
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (answers[i].ok())
      begun.push_back(targets_[i]);
    else if (answers[i].result.complete)
      refused.push_back(targets_[i]);
    else
      control_.spoil(targets_[i], "failed at " + begin.path + ": " + answers[i].trouble());
  }
  control_.post(refused, dialect_.end_update(), deadlines_.probe);
  control_.update(refused, begin, deadlines_.control);
  begun.insert(begun.end(), refused.begin(), refused.end());
  targets_ = std::move(begun);
}

// Whatever came of them, the next update could not start before this one has ended there.
Delivery::~Delivery() {
  if (open_.empty()) return;
  control_.post(open_, dialect_.end_update(), deadlines_.probe);
  for (const Target& target : targets_) control_.spoil(target, "holds a part of a weight update that was broken off");
}

void Delivery::add(const sdk::Call& call, const hexad_weight_list& bucket) {
  weights_ += bucket.count;
  channel_.send(call, bucket, targets_);
}

std::vector<Target> Delivery::finish() {
  if (weights_ == 0) sdk::fail(HEXAD_FAILED_PRECONDITION, "weight update: no weight came before its end");
  control_.update(targets_, dialect_.end_update(), deadlines_.control);
  std::erase_if(open_, [&](const Target& target) {
    return std::ranges::any_of(targets_, [&](const Target& done) { return done.index == target.index; });
  });
  return std::exchange(targets_, {});
}

}  // namespace hexad::bridge
