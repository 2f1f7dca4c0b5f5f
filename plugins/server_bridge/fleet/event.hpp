// A completion on its way to the host, with everything that it points to.
#pragma once
#include <hexad/abi.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace hexad::bridge {

struct Event {
  // Null until seal, which makes and frees it in event.cpp alone: how large it is depends on the minor of the ABI that
  // a file is compiled for, and tests know a later one than the bridge.
  std::shared_ptr<const hexad_completion> completion;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<hexad_version_span> spans;
  std::string error;
  // The column routed_experts, of a model with experts: int16 [tokens of prompt and completion, layers, experts]. Those
  // that are not known are -1, the router's own choice.
  std::vector<int16_t> routes;
  int64_t prompt_size = 0, route_layers = 0, route_experts = 0;  // 0: no such column
  int64_t route_shape[3] = {};
  DLTensor route_view{};
  hexad_named_tensor route_column{};

  // Makes the completion point to the vectors, of which it takes the first `count` tokens.
  void seal(uint64_t id, int32_t finish, size_t count);
  void seal(uint64_t id, int32_t finish) { seal(id, finish, tokens.size()); }

 private:
  void seal_routes(hexad_completion& made);
};

// From the loop's thread to the poller's.
class Outbox {
 public:
  void put_final(std::unique_ptr<Event> event);
  // Takes the place of an earlier one that nobody has taken.
  void put_partial(std::unique_ptr<Event> event);
  void set_trouble(std::string text);  // what poll fails with; "": nothing
  std::string trouble() const;

  // The next event, partial ones last; null if there is none.
  std::unique_ptr<Event> take();
  // Waits until there is something to take, or trouble.
  void wait_until(std::chrono::steady_clock::time_point deadline);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Event>> finals_;
  std::deque<uint64_t> partial_order_;
  std::unordered_map<uint64_t, std::unique_ptr<Event>> partials_;
  std::string trouble_;
};

}  // namespace hexad::bridge
