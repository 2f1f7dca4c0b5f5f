// A generator in the process of a confined plugin.
#include <algorithm>
#include <vector>

#include "core/plugin/confined/columns.hpp"
#include "core/plugin/confined/serve/kind_server.hpp"
#include "core/plugin/confined/weights.hpp"
#include "core/plugin/kind/poll_rules.hpp"

namespace hexad::plugin::confined {
namespace {

constexpr int64_t kMostEvents = 16;  // of a frame: columns of long completions are large

hexad_code serve_describe(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  hexad_generator_info info{};
  info.struct_size = HEXAD_STRUCT_SIZE(hexad_generator_info, weight_form);
  const hexad_code code = vtable.describe(self, call.handle(), &info);
  call.out.put(info);
  return code;
}

hexad_code serve_submit(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  std::vector<hexad_request> requests(static_cast<size_t>(call.in.get<int64_t>()));
  std::deque<std::string> texts;
  std::deque<std::vector<const char*>> stops;
  std::vector<const hexad_request*> pointers;
  for (hexad_request& request : requests) {
    request = call.in.get<hexad_request>();
    request.prompt = call.array<int32_t>();
    request.stop_token_ids = call.array<int32_t>();
    std::vector<const char*>& list = stops.emplace_back();
    for (int64_t i = 0; i < request.num_stop_strings; ++i) list.push_back(texts.emplace_back(call.in.text()).c_str());
    request.stop_strings = list.data();
    pointers.push_back(&request);
  }
  return vtable.submit(self, call.handle(), pointers.data(), static_cast<int64_t>(pointers.size()));
}

void write_completion(Writer& out, const hexad_completion* event) {
  hexad_completion completion{};
  completion.id = event->id;
  completion.finish = event->finish;
  out.put(completion);
  out.array(event->tokens, event->count);
  out.array(event->logprobs, event->count);
  out.array(event->spans, event->num_spans);
  out.optional_text(HEXAD_HAS(event, error) ? event->error : nullptr);
  write_columns(out, *event);
}

// The events are written down and released at once: the engine has copies of its own.
hexad_code serve_poll(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  const auto max_events = std::min(call.in.get<int64_t>(), kMostEvents), timeout_ms = call.in.get<int64_t>();
  std::vector<const hexad_completion*> events(static_cast<size_t>(max_events));
  int64_t count = 0;
  const hexad_code code = vtable.poll(self, call.handle(), events.data(), max_events, timeout_ms, &count);
  if (code != HEXAD_OK) return code;
  if (const auto broken = broken_rule_of_poll(events, count))
    return call.set_error(HEXAD_INTERNAL, fmt::format("{} (rule {} of the ABI): the plugin is faulty, tell its author",
                                                      broken->what, broken->rule));
  call.out.put(count);
  for (int64_t i = 0; i < count; ++i) write_completion(call.out, events[static_cast<size_t>(i)]);
  vtable.release(self, events.data(), count);
  return code;
}

hexad_code serve_cancel(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  const std::vector<uint64_t> ids = call.in.array<uint64_t>();
  return vtable.cancel(self, call.handle(), ids.data(), static_cast<int64_t>(ids.size()));
}

hexad_code serve_update_begin(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  return vtable.update_begin(self, call.handle(), call.in.get<int64_t>());
}

hexad_code serve_update_bucket(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  const Slices slices(call.in, [&] { return call.tensor(); });
  hexad_weight_list bucket{};
  bucket.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  slices.fill(bucket);
  return vtable.update_bucket(self, call.handle(), &bucket);
}

hexad_code serve_update_end(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  return vtable.update_end(self, call.handle(), call.in.get<int32_t>());
}

hexad_code serve_weight_layout(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  const hexad_code code = vtable.weight_layout(self, call.handle(), &list);
  if (code == HEXAD_OK) write_slices(call.out, list);
  return code;
}

hexad_code serve_sleep(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  return vtable.sleep(self, call.handle(), call.in.get<int32_t>());
}

// Functions that take nothing and give nothing.
template <auto Member>
hexad_code serve_plain(const hexad_generator_vtable& vtable, hexad_generator* self, ServedCall& call) {
  return (vtable.*Member)(self, call.handle());
}

const InstanceServer<hexad_generator_vtable, hexad_generator>::Functions& generator_functions() {
  static const InstanceServer<hexad_generator_vtable, hexad_generator>::Functions all = {
      {"describe", serve_describe},
      {"submit", serve_submit},
      {"poll", serve_poll},
      {"cancel", serve_cancel},
      {"update_begin", serve_update_begin},
      {"update_bucket", serve_update_bucket},
      {"update_end", serve_update_end},
      {"weight_layout", serve_weight_layout},
      {"pause", serve_plain<&hexad_generator_vtable::pause>},
      {"resume", serve_plain<&hexad_generator_vtable::resume>},
      {"sleep", serve_sleep},
      {"wake", serve_plain<&hexad_generator_vtable::wake>},
      {"flush_cache", serve_plain<&hexad_generator_vtable::flush_cache>}};
  return all;
}

class GeneratorServer : public InstanceServer<hexad_generator_vtable, hexad_generator> {
 public:
  explicit GeneratorServer(const LoadedPlugin& plugin)
      : InstanceServer(plugin, plugin.desc->generator, generator_functions()) {}

  void facts(Writer& out) const override {
    const hexad_generator_vtable* table = &vtable_;
    out.put(uint8_t{HEXAD_HAS(table, weight_layout) && table->weight_layout});
    out.put(uint8_t{HEXAD_HAS(table, pause) && table->pause});
    out.put(uint8_t{HEXAD_HAS(table, resume) && table->resume});
    out.put(uint8_t{HEXAD_HAS(table, sleep) && table->sleep});
    out.put(uint8_t{HEXAD_HAS(table, wake) && table->wake});
    out.put(uint8_t{HEXAD_HAS(table, flush_cache) && table->flush_cache});
  }
};

}  // namespace

std::unique_ptr<KindServer> serve_generator(const LoadedPlugin& plugin) {
  return std::make_unique<GeneratorServer>(plugin);
}

}  // namespace hexad::plugin::confined
