#include "plugins/native/event.hpp"

#include <algorithm>

namespace hexad::native {

std::unique_ptr<Event> make_event(const Sequence& sequence, int32_t finish, std::string error) {
  auto event = std::make_unique<Event>();
  event->tokens.assign(sequence.tokens.begin() + sequence.prompt_size(), sequence.tokens.begin() + sequence.known());
  event->logprobs = sequence.logprobs;
  event->spans = sequence.spans;
  event->error = std::move(error);
  hexad_completion& c = event->completion;
  c.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
  c.finish = finish;
  c.id = sequence.request.id;
  c.tokens = event->tokens.data();
  c.logprobs = event->logprobs.data();
  c.count = static_cast<int64_t>(event->tokens.size());
  c.spans = event->spans.data();
  c.num_spans = static_cast<int64_t>(event->spans.size());
  c.error = finish == HEXAD_FINISH_ERROR ? event->error.c_str() : nullptr;
  return event;
}

void collect_routes(Sequence& sequence, const KvCache& cache) {
  const auto [layers, experts] = cache.routes_shape();
  const int64_t width = layers * experts, block_size = cache.block_size();
  if (width == 0) return;
  for (int64_t known = static_cast<int64_t>(sequence.routes.size()) / width; known < sequence.computed;) {
    const at::Tensor block = cache.routes()[sequence.blocks[static_cast<size_t>(known / block_size)]];
    const int64_t end = std::min(sequence.computed, (known / block_size + 1) * block_size);
    const int16_t* from = block.const_data_ptr<int16_t>() + known % block_size * width;
    sequence.routes.insert(sequence.routes.end(), from, from + (end - known) * width);
    known = end;
  }
}

void add_routes(Event& event, const Sequence& sequence, const KvCache& cache) {
  const auto [layers, experts] = cache.routes_shape();
  if (layers == 0) return;
  event.routes = sequence.routes;
  event.routes.resize(static_cast<size_t>(sequence.size() * layers * experts), -1);
  const int64_t shape[] = {sequence.size(), layers, experts};
  std::copy_n(shape, 3, event.routes_shape);
  event.routes_view = {event.routes.data(), {kDLCPU, 0}, 3, {kDLInt, 16, 1}, event.routes_shape, nullptr, 0};
  event.column = {"routed_experts", &event.routes_view, nullptr, HEXAD_AXIS_TOKEN, 0};
  event.completion.columns = &event.column;
  event.completion.num_columns = 1;
}

}  // namespace hexad::native
