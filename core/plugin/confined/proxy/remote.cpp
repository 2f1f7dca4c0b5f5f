#include "core/plugin/confined/proxy/remote.hpp"

#include <algorithm>
#include <new>

#include "lib/base/error.hpp"
#include "core/plugin/confined/questions.hpp"

namespace hexad::plugin::confined {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kGrace = kSecond;             // for a plugin that keeps the deadline by itself
constexpr int64_t kCancelEvery = kSecond / 20;  // how soon a cancellation is over there

CallHead head_of(const CallContext& context, uint64_t instance) {
  CallHead head;
  head.instance = instance;
  head.step = context.step;
  head.flags = context.flags;
  head.deadline_ns = context.deadline_ns;
  head.takes_metrics = static_cast<bool>(context.metric);
  head.detokenizes = static_cast<bool>(context.detokenize);
  return head;
}

int64_t end_of(const CallContext& context, int64_t limit_ns) {
  const int64_t limit = now_ns() + limit_ns;
  return context.deadline_ns > kForever - kGrace ? limit : std::min(limit, context.deadline_ns + kGrace);
}

// Waits for the answer and serves what the plugin asks for meanwhile.
std::string wait_for_answer(Channel& channel, Questions& questions, std::atomic<bool>& cancelled_there,
                            const std::atomic<bool>* cancelled, int64_t end) {
  while (true) {
    const bool watching = cancelled && !cancelled_there;
    std::optional<Frame> frame =
        channel.receive(watching ? std::min(end, now_ns() + kCancelEvery) : end, /*ends_by=*/end + kGrace);
    if (watching) cancelled_there = cancelled->load();
    if (!frame) {
      if (now_ns() >= end) throw TimedOut();
      continue;
    }
    if (frame->kind == kAnswer) return std::move(frame->bytes);
    if (const auto reply = questions.serve(*frame)) channel.send(kReply, *reply, end);
  }
}

}  // namespace

Remote::Remote(const std::filesystem::path& program, double limit_s)
    : process_(*new Process(program)), limit_ns_(static_cast<int64_t>(std::min(limit_s, 1e9) * 1e9)) {}

Remote::Lane& Remote::borrow() {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      Lane& lane = *idle_.back();
      idle_.pop_back();
      return lane;
    }
  }
  auto lane = std::make_unique<Lane>(process_.connect());
  const std::scoped_lock lock(mutex_);
  return *lanes_.emplace_back(std::move(lane));
}

// A lane whose answer never came is not used again.
void Remote::give_back(Lane& lane) {
  const std::scoped_lock lock(mutex_);
  if (!lane.in_call) idle_.push_back(&lane);
}

struct Remote::Borrowed {
  explicit Borrowed(Remote& remote) : remote(remote), lane(remote.borrow()) {}
  ~Borrowed() { remote.give_back(lane); }
  Remote& remote;
  Lane& lane;
};

std::string Remote::lost(std::string_view function, const std::string& why) {
  if (!why.empty()) process_.end(why);
  const std::string ending = process_.ending(function);
  const std::scoped_lock lock(mutex_);
  if (lost_.empty()) lost_ = fmt::format("its own process (pid {}) {}", process_.pid(), ending);
  return lost_;
}

// Tensors first, then the arguments; new memory goes along with the call that needs it.
void Remote::send(Lane& lane, const CallContext& context, std::string_view function, uint64_t instance,
                  const Request& request, int64_t end) {
  request.place(lane.down, lane.up);
  lane.cancelled() = context.cancelled && *context.cancelled;
  CallHead head = head_of(context, instance);
  std::vector<int> descriptors;
  if (!lane.down.known) head.new_down = 1, descriptors.push_back(lane.down.memory.descriptor());
  if (!lane.up.known) head.new_up = 1, descriptors.push_back(lane.up.memory.descriptor());
  Writer out;
  out.put(head);
  out.text(function);
  out.append(request.arguments.bytes());
  lane.in_call = true;
  lane.channel->send(kCall, out.bytes(), descriptors, end);
  lane.down.known = lane.up.known = true;
}

hexad_code Remote::exchange(Lane& lane, hexad_call* call, std::string_view function, uint64_t instance,
                            const hexad_config* config, const Request& request,
                            const std::function<void(Reader&)>& results) {
  Call& self = Call::from(call);
  const CallContext& context = self.context();
  const int64_t end = end_of(context, limit_ns_ + request.may_take_ms * (kSecond / 1000));
  send(lane, context, function, instance, request, end);
  Questions questions(call, config, request);
  const std::string answer = wait_for_answer(*lane.channel, questions, lane.cancelled(), context.cancelled, end);
  lane.in_call = false;

  Reader in(answer);
  const auto code = in.get<hexad_code>();
  const std::string text = in.text();
  if (code != HEXAD_OK) {
    if (!text.empty()) self.set_error(code, text);
  } else if (!questions.failure().empty()) {
    return self.set_error(HEXAD_INTERNAL, questions.failure());
  } else {
    if (results) results(in);
    request.collect(lane.up.memory);
  }
  if (request.ends_transfer) lane.down = {};
  return code;
}

hexad_code Remote::call(hexad_call* call, std::string_view function, uint64_t instance, const hexad_config* config,
                        const Request& request, const std::function<void(Reader&)>& results) {
  Call& self = Call::from(call);
  const auto unavailable = [&](const std::string& why) {
    return self.set_error(HEXAD_UNAVAILABLE, lost(function, why));
  };
  const int64_t began = now_ns();
  try {
    const Borrowed borrowed(*this);
    return exchange(borrowed.lane, call, function, instance, config, request, results);
  } catch (const Closed&) {
    return unavailable("");
  } catch (const TimedOut&) {
    return unavailable(fmt::format("did not answer within {:.1f} s", static_cast<double>(now_ns() - began) / 1e9));
  } catch (const BadPacket& error) {
    return unavailable(fmt::format("sent {}", error.what()));
  } catch (const std::bad_alloc&) {
    return self.set_error(HEXAD_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    return self.set_error(HEXAD_INTERNAL, error.what());
  }
}

}  // namespace hexad::plugin::confined
