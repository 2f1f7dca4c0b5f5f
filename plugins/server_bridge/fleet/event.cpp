#include "plugins/server_bridge/fleet/event.hpp"

namespace hexad::bridge {

void Event::seal(uint64_t id, int32_t finish, size_t count) {
  tokens.resize(count), logprobs.resize(count);
  while (!spans.empty() && spans.back().start >= static_cast<int64_t>(count)) spans.pop_back();
  auto made = std::make_shared<hexad_completion>();
  made->struct_size = HEXAD_STRUCT_SIZE(hexad_completion, error);
  made->finish = finish;
  made->id = id;
  made->tokens = tokens.data();
  made->logprobs = logprobs.data();
  made->count = static_cast<int64_t>(count);
  made->spans = spans.data();
  made->num_spans = static_cast<int64_t>(spans.size());
  made->error = finish == HEXAD_FINISH_ERROR ? error.c_str() : nullptr;
  if (route_layers > 0 && finish != HEXAD_FINISH_NONE && finish != HEXAD_FINISH_ERROR) seal_routes(*made);
  completion = std::move(made);
}

void Event::seal_routes(hexad_completion& made) {
  route_shape[0] = prompt_size + made.count, route_shape[1] = route_layers, route_shape[2] = route_experts;
  routes.resize(static_cast<size_t>(route_shape[0] * route_layers * route_experts), -1);
  route_view = {routes.data(), {kDLCPU, 0}, 3, {kDLInt, 16, 1}, route_shape, nullptr, 0};
  route_column = {"routed_experts", &route_view, nullptr, HEXAD_AXIS_TOKEN, 0};
  made.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
  made.columns = &route_column;
  made.num_columns = 1;
}

void Outbox::put_final(std::unique_ptr<Event> event) {
  const std::lock_guard lock(mutex_);
  partials_.erase(event->completion->id);
  finals_.push_back(std::move(event));
  changed_.notify_all();
}

void Outbox::put_partial(std::unique_ptr<Event> event) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Event>& place = partials_[event->completion->id];
  if (!place) partial_order_.push_back(event->completion->id);
  place = std::move(event);
  changed_.notify_all();
}

void Outbox::set_trouble(std::string text) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(text);
  if (!trouble_.empty()) changed_.notify_all();
}

std::string Outbox::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

std::unique_ptr<Event> Outbox::take() {
  const std::lock_guard lock(mutex_);
  if (!finals_.empty()) {
    auto event = std::move(finals_.front());
    finals_.pop_front();
    return event;
  }
  while (!partial_order_.empty()) {
    auto found = partials_.extract(partial_order_.front());
    partial_order_.pop_front();
    if (found) return std::move(found.mapped());  // else it has ended meanwhile
  }
  return nullptr;
}

void Outbox::wait_until(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return !finals_.empty() || !partials_.empty() || !trouble_.empty(); });
}

}  // namespace hexad::bridge
