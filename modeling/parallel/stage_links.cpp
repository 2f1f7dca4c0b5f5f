#include "modeling/parallel/stage_links.hpp"

#include <array>
#include <utility>

#include "modeling/error.hpp"

namespace hexad::modeling {

StageLinks::StageLinks(const Group& group, Options options) : group_(group), options_(std::move(options)) {
  if (options_.overlap && options_.batch) fail("pipeline: messages that overlap are not sent in batches");
}

int64_t StageLinks::neighbour(bool next) const {
  return (group_.rank() + (next ? 1 : group_.size() - 1)) % group_.size();
}

// The stage's place in the whole pipeline.
int64_t StageLinks::stage(const Unit& unit) const { return unit.chunk * group_.size() + group_.rank(); }

// A message is named by the stage that receives it, its micro-batch and its kind.
int32_t StageLinks::tag(int64_t receiving_stage, const Unit& unit, Kind kind) const {
  return static_cast<int32_t>((receiving_stage * options_.microbatches + unit.microbatch) * 2 +
                              (kind == Kind::gradient));
}

void StageLinks::give(Kind kind, const Unit& unit, const at::Tensor& tensor) {
  made_[static_cast<int>(kind)][{unit.chunk, unit.microbatch}] = tensor;
}

std::optional<StageLinks::Planned> StageLinks::receive(Kind kind, const std::optional<Unit>& unit) {
  if (!unit) return {};
  const at::Tensor room = options_.room(*unit);
  if (!room.defined()) return {};
  return Planned{{room, neighbour(kind == Kind::gradient), tag(stage(*unit), *unit, kind), /*receives=*/true},
                 kind,
                 {unit->chunk, unit->microbatch}};
}

std::optional<StageLinks::Planned> StageLinks::send(Kind kind, const std::optional<Unit>& unit) {
  if (!unit) return {};
  const Key key{unit->chunk, unit->microbatch};
  auto made = made_[static_cast<int>(kind)].extract(key);
  if (made.empty()) return {};
  const int64_t receiver = stage(*unit) + (kind == Kind::activation ? 1 : -1);
  return Planned{
      {made.mapped().contiguous(), neighbour(kind == Kind::activation), tag(receiver, *unit, kind), false}, kind, key};
}

// Returns the message that left before one that leaves now.
StageLinks::Transfer StageLinks::post(const Planned& planned) {
  const int kind = static_cast<int>(planned.kind);
  const Transfer posted{planned.message.tensor, group_.post(planned.message)};
  if (!planned.message.receives) return std::exchange(leaving_[kind], posted);
  arriving_[kind][planned.unit] = posted;
  return {};
}

void StageLinks::exchange(const layout::PipelineEvent& event) {
  const std::optional<Planned> to_next = send(Kind::activation, event.send_next),
                               to_previous = send(Kind::gradient, event.send_prev),
                               from_previous = receive(Kind::activation, event.recv_prev),
                               from_next = receive(Kind::gradient, event.recv_next);
  // Messages between two ranks may be served one after another: one sends while the other receives (Megatron-Core's
  // _p2p_ops).
  std::vector<Planned> planned;
  const bool even = group_.rank() % 2 == 0;
  for (const auto* message : even ? std::array{&to_next, &from_previous, &to_previous, &from_next}
                                  : std::array{&from_previous, &to_next, &from_next, &to_previous})
    if (*message) planned.push_back(**message);
  if (options_.batch) {
    exchange_at_once(planned);
    return;
  }
  std::vector<Transfer> before;
  for (const Planned& message : planned) before.push_back(post(message));
  for (Transfer& transfer : before) transfer.pending.wait();
  if (options_.overlap) return;
  for (const Planned& message : planned) {
    const int kind = static_cast<int>(message.kind);
    (message.message.receives ? arriving_[kind].at(message.unit) : leaving_[kind]).pending.wait();
  }
}

void StageLinks::exchange_at_once(const std::vector<Planned>& planned) {
  std::vector<Group::Message> messages;
  for (const Planned& one : planned) messages.push_back(one.message);
  group_.exchange(messages).wait();
  for (const Planned& one : planned)
    if (one.message.receives) arriving_[static_cast<int>(one.kind)][one.unit].tensor = one.message.tensor;
}

at::Tensor StageLinks::take(Kind kind, const Unit& unit) {
  auto arrived = arriving_[static_cast<int>(kind)].extract(Key{unit.chunk, unit.microbatch});
  if (arrived.empty()) return {};
  arrived.mapped().pending.wait();
  return arrived.mapped().tensor;
}

void StageLinks::finish() {
  for (Transfer& transfer : leaving_) {
    transfer.pending.wait();
    transfer.tensor.reset();
  }
}

}  // namespace hexad::modeling
