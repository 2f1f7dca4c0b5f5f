// A completion on its way to the host, with everything that it points to.
#pragma once
#include <hexad/abi.h>

#include <memory>
#include <string>
#include <vector>

#include "plugins/native/model/kv_cache.hpp"
#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

struct Event {
  hexad_completion completion{};
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<hexad_version_span> spans;
  std::string error;
  std::vector<int16_t> routes;  // [tokens, layers, experts]: the column routed_experts
  int64_t routes_shape[3] = {};
  DLTensor routes_view{};
  hexad_named_tensor column{};
};

// A copy of what is known of the sequence now. `error` is for HEXAD_FINISH_ERROR.
std::unique_ptr<Event> make_event(const Sequence& sequence, int32_t finish, std::string error = {});

// After a pass, of a sequence that was in it: copies the routes of tokens that were not run before from the cache.
void collect_routes(Sequence& sequence, const KvCache& cache);
// Adds the column routed_experts of a sequence that has ended, if the cache keeps routes.
void add_routes(Event& event, const Sequence& sequence, const KvCache& cache);

}  // namespace hexad::native
