#include "plugins/native/event.hpp"

namespace hexad::native {

std::unique_ptr<Event> make_event(const Sequence& sequence, int32_t finish, std::string error) {
  auto event = std::make_unique<Event>();
  event->tokens.assign(sequence.tokens.begin() + sequence.prompt_size(), sequence.tokens.end());
  event->logprobs = sequence.logprobs;
  event->spans = sequence.spans;
  event->error = std::move(error);
  hexad_completion& c = event->completion;
  c.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, error);
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

}  // namespace hexad::native
