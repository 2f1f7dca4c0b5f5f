// The generator vtable of a confined generator.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/plugin/confined/columns.hpp"
#include "core/plugin/confined/proxy/proxy.hpp"
#include "core/plugin/confined/weights.hpp"

namespace hexad::plugin::confined {
namespace {

// A completion that was read; `release` frees it.
struct Completion : hexad_completion {
  explicit Completion(Reader& in) : hexad_completion(in.get<hexad_completion>()) {
    token_list = in.array<int32_t>();
    logprob_list = in.array<float>();
    span_list = in.array<hexad_version_span>();
    error = nullptr;
    if (in.has()) error = (error_text = in.text()).c_str();
    if (token_list.size() != logprob_list.size()) throw BadPacket("a completion without a log-prob for each token");
    column_list.emplace(in);
    columns = column_list->data();
    num_columns = column_list->size();
    struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
    tokens = token_list.data();
    logprobs = logprob_list.data();
    count = static_cast<int64_t>(token_list.size());
    spans = span_list.data();
    num_spans = static_cast<int64_t>(span_list.size());
  }
  std::vector<int32_t> token_list;
  std::vector<float> logprob_list;
  std::vector<hexad_version_span> span_list;
  std::string error_text;
  std::optional<Columns> column_list;
};

hexad_code generator_describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  return invoke(
      self, call, "describe", [](Request&) {},
      [&](Reader& in) {
        auto described = in.get<hexad_generator_info>();
        described.struct_size = info->struct_size;
        *info = described;
      });
}

hexad_code generator_submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests,
                            int64_t count) {
  return invoke(self, call, "submit", [&](Request& request) {
    Writer& out = request.arguments;
    out.put(count);
    for (int64_t i = 0; i < count; ++i) {
      const hexad_request& each = *requests[i];
      out.put(each);
      out.array(each.prompt, each.prompt_size);
      out.array(each.stop_token_ids, each.num_stop_token_ids);
      for (int64_t s = 0; s < each.num_stop_strings; ++s) out.text(each.stop_strings[s]);
    }
  });
}

hexad_code generator_poll(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                          int64_t timeout_ms, int64_t* count) {
  return invoke(
      self, call, "poll",
      [&](Request& request) {
        request.may_take_ms = std::clamp<int64_t>(timeout_ms, 0, 1'000'000'000);
        request.arguments.put(max_events);
        request.arguments.put(timeout_ms);
      },
      [&](Reader& in) {
        const auto size = in.get<int64_t>();
        if (size < 0 || size > max_events) throw BadPacket("more completions than were asked for");
        std::vector<std::unique_ptr<Completion>> read;
        for (int64_t i = 0; i < size; ++i) read.push_back(std::make_unique<Completion>(in));
        *count = size;
        for (int64_t i = 0; i < size; ++i) events[i] = read[static_cast<size_t>(i)].release();
      });
}

void generator_release(hexad_generator*, const hexad_completion* const* events, int64_t count) {
  for (int64_t i = 0; i < count; ++i) delete static_cast<const Completion*>(events[i]);
}

hexad_code generator_cancel(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count) {
  return invoke(self, call, "cancel", [&](Request& request) { request.arguments.array(ids, count); });
}

hexad_code generator_update_begin(hexad_generator* self, hexad_call* call, int64_t version) {
  return invoke(self, call, "update_begin", [&](Request& request) { request.arguments.put(version); });
}

hexad_code generator_update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  return invoke(self, call, "update_bucket", [&](Request& request) {
    write_slices(request.arguments, *bucket, [&](const DLTensor* tensor) { request.in(tensor); });
  });
}

hexad_code generator_update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  return invoke(self, call, "update_end", [&](Request& request) {
    request.arguments.put(commit);
    request.ends_transfer = true;
  });
}

hexad_code generator_weight_layout(hexad_generator* self, hexad_call* call, hexad_weight_list* out) {
  return invoke(
      self, call, "weight_layout", [](Request&) {},
      [&](Reader& in) {
        const auto read = std::make_shared<Slices>(in);
        instance_of(self).of_kind = read;  // the list is valid until destroy
        read->fill(*out);
      });
}

hexad_code generator_pause(hexad_generator* self, hexad_call* call) { return invoke(self, call, "pause"); }
hexad_code generator_resume(hexad_generator* self, hexad_call* call) { return invoke(self, call, "resume"); }
hexad_code generator_sleep(hexad_generator* self, hexad_call* call, int32_t level) {
  return invoke(self, call, "sleep", [&](Request& request) { request.arguments.put(level); });
}
hexad_code generator_wake(hexad_generator* self, hexad_call* call) { return invoke(self, call, "wake"); }
hexad_code generator_flush_cache(hexad_generator* self, hexad_call* call) { return invoke(self, call, "flush_cache"); }

}  // namespace

void add_generator(ConfinedPlugin& plugin, Reader& facts) {
  const auto made = std::make_shared<hexad_generator_vtable>();
  made->struct_size = HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache);
  made->create = create<hexad_generator>;
  made->destroy = destroy<hexad_generator>;
  made->describe = generator_describe;
  made->submit = generator_submit;
  made->poll = generator_poll;
  made->release = generator_release;
  made->cancel = generator_cancel;
  made->update_begin = generator_update_begin;
  made->update_bucket = generator_update_bucket;
  made->update_end = generator_update_end;
  if (facts.has()) made->weight_layout = generator_weight_layout;
  if (facts.has()) made->pause = generator_pause;
  if (facts.has()) made->resume = generator_resume;
  if (facts.has()) made->sleep = generator_sleep;
  if (facts.has()) made->wake = generator_wake;
  if (facts.has()) made->flush_cache = generator_flush_cache;
  plugin.desc.generator = made.get();
  plugin.of_kind = made;
}

}  // namespace hexad::plugin::confined
