#include <chrono>

#include "sdk/verify/case/generator_case.hpp"

namespace hexad::verify {
namespace {

using Clock = std::chrono::steady_clock;

std::string bits_of(const hexad_completion& event) {
  std::string text = std::to_string(event.id) + ":" + std::to_string(event.finish) + ":";
  text.append(reinterpret_cast<const char*>(event.tokens), static_cast<size_t>(event.count) * sizeof(int32_t));
  text.append(reinterpret_cast<const char*>(event.logprobs), static_cast<size_t>(event.count) * sizeof(float));
  for (int64_t i = 0; i < event.num_spans; ++i)
    text += std::to_string(event.spans[i].start) + "v" + std::to_string(event.spans[i].version);
  return text;
}

// A generator whose events are polled one by one and kept.
class Holder {
 public:
  Holder(const Subject& subject, void* self, Findings& findings)
      : subject_(subject), self_(static_cast<hexad_generator*>(self)), findings_(findings) {}
  ~Holder() {
    for (const hexad_completion* event : held_) vtable().release(self_, &event, 1);
  }

  // Submits, and holds the events that end these requests; false if one does not come.
  bool hold(const std::vector<hexad_request>& requests) {
    std::vector<const hexad_request*> pointers;
    for (const hexad_request& request : requests) pointers.push_back(&request);
    const auto call = subject_.engine->call();
    const hexad_code code =
        vtable().submit(self_, call->handle(), pointers.data(), static_cast<int64_t>(pointers.size()));
    if (!findings_.expect(code == HEXAD_OK, "events", "submit failed: " + call->text())) return false;
    const auto end = Clock::now() + std::chrono::duration<double>(subject_.patience_s);
    size_t finals = 0;
    while (finals < requests.size() && Clock::now() < end) {
      const size_t before = held_.size();
      if (!poll()) return false;
      if (held_.size() > before) finals += held_.back()->finish != HEXAD_FINISH_NONE;
    }
    return finals == requests.size();
  }

  std::string bits(size_t count) const {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += bits_of(*held_[i]);
    return text;
  }
  size_t size() const { return held_.size(); }

 private:
  const hexad_generator_vtable& vtable() const { return *subject_.desc->generator; }

  // One event at most; false if poll broke its promise.
  bool poll() {
    const hexad_completion* const mark = reinterpret_cast<const hexad_completion*>(0x5A5A5A50);
    const hexad_completion* events[8] = {nullptr, mark, mark, mark, mark, mark, mark, mark};
    int64_t count = 0;
    const auto call = subject_.engine->call();
    const hexad_code code = vtable().poll(self_, call->handle(), events, /*max_events=*/1, /*timeout_ms=*/100, &count);
    if (!findings_.expect(code == HEXAD_OK, "events", "poll failed: " + call->text())) return false;
    if (!findings_.expect(count <= 1 && events[1] == mark, "events",
                          "poll with room for 1 event gave " + std::to_string(count)))
      return false;
    if (count == 1) held_.push_back(events[0]);
    return true;
  }

  const Subject& subject_;
  hexad_generator* self_;
  Findings& findings_;
  std::vector<const hexad_completion*> held_;
};

}  // namespace

void check_events(const Subject& subject, void* self, Findings& findings) {
  Holder holder(subject, self, findings);
  if (!holder.hold({make_request(1, 1, 1, kNewTokens), make_request(2, 1, 2, kNewTokens)})) return;
  const size_t count = holder.size();
  const std::string before = holder.bits(count);
  if (!holder.hold({make_request(3, 1, 3, kNewTokens)})) return;
  findings.expect(holder.bits(count) == before, "events",
                  "an event that is not released yet changed when a later one came");
}

}  // namespace hexad::verify
