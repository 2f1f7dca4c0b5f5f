// A message of the control plane as its frames: the header up to the first newline, then each tensor's bytes behind one
// that counts them. What is read from it is what controller and workers read.
#include "core/cluster/generation_requests.hpp"
#include "core/cluster/protocol/protocol.hpp"
#include "core/cluster/refit/plan.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using namespace hexad::cluster::protocol;
using cluster::Message;

namespace {

cluster::Frame frame(std::string_view bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  return {owner, owner->data(), owner->size()};
}

std::vector<cluster::Frame> frames_in(std::string_view bytes) {
  const size_t newline = std::min(bytes.find('\n'), bytes.size());
  std::vector<cluster::Frame> frames = {frame(bytes.substr(0, newline))};
  for (size_t at = newline + 1; at < bytes.size();) {
    const size_t count = static_cast<uint8_t>(bytes[at]);
    frames.push_back(frame(bytes.substr(at + 1, count)));
    at += 1 + count;
  }
  return frames;
}

// Reads the message as this struct, as whoever gets one does: what is wrong with it is an Error.
template <typename T>
std::optional<T> read_as(const Message& message) {
  try {
    return from_message<T>(message, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <typename... T>
void read_as_each(const Message& message) {
  (read_as<T>(message), ...);
}

template <typename Work>
void try_to(Work&& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

void read_all(const Message& message) {
  for (const auto& entry : message.header.items())
    try_to([&] { message.batch(entry.key()).select(std::vector<int64_t>{0}); });
  read_as_each<Hello, Heartbeat, Progress, Completions, Failure, Failed>(message);
  read_as_each<Start, Start::Reply, Trace, Forward, Forward::Reply, Train, LossReply, Step, Step::Reply>(message);
  read_as_each<Generate::Reply, CancelRequests, Sleep, Refit, Refit::Reply, RefitConnect, WeightSums::Reply>(message);
  read_as_each<Keep, Save, Save::Reply, Saved, Saved::Reply, Load>(message);
  if (const auto generate = read_as<Generate>(message)) try_to([&] { cluster::make_requests(*generate); });
  if (auto layouts = read_as<RefitLayout::Reply>(message))
    try_to([&] {
      std::vector<cluster::Layout> needed = {layouts->needed};
      cluster::plan_refit({layouts->held}, needed, 1 << 20);
    });
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const Message message = cluster::decode(frames_in(fuzz::text_of(data, size)));
    cluster::encode_header(message);
    read_all(message);
  });
  return 0;
}
