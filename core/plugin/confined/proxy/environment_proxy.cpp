// The environment vtable of a confined environment.
#include <vector>

#include "core/plugin/confined/proxy/proxy.hpp"

namespace hexad::plugin::confined {
namespace {

struct EnvironmentFacts {
  hexad_environment_vtable vtable{};
  std::vector<const char*> components;
};

// What the samples' replies and answers point to, until the next call.
struct Texts {
  std::deque<std::string> texts;
};

const char* take_text(Reader& in, Texts& kept, uint64_t* size = nullptr) {
  if (!in.has()) return nullptr;
  const std::string& text = kept.texts.emplace_back(in.text());
  if (size) *size = text.size();
  return text.c_str();
}

template <typename T>
void take(Reader& in, T* out, int64_t count) {
  const std::vector<T> values = in.array<T>();
  if (static_cast<int64_t>(values.size()) != count) throw BadPacket("scores of another number of samples");
  std::copy(values.begin(), values.end(), out);
}

hexad_code environment_score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples,
                             int64_t count, hexad_scores* out) {
  return invoke(
      self, call, "score",
      [&](Request& request) {
        Writer& arguments = request.arguments;
        arguments.put(count);
        for (int64_t i = 0; i < count; ++i) {
          const hexad_sample& sample = *samples[i];
          arguments.put(sample);
          arguments.text({sample.prompt, sample.prompt_size});
          arguments.text({sample.response, sample.response_size});
          arguments.text({sample.ground_truth, sample.ground_truth_size});
          arguments.text({sample.metadata, sample.metadata_size});
          arguments.text({sample.state, sample.state_size});
          arguments.array(sample.tokens, sample.prompt_tokens + sample.response_tokens);
        }
      },
      [&](Reader& in) {
        const auto& plugin = *instance_of(self).plugin;
        take(in, out->rewards, count);
        take(in, out->invalid, count);
        take(in, out->components, count * plugin.desc.environment->num_components);
        const auto texts = std::make_shared<Texts>();
        instance_of(self).of_kind = texts;
        for (int64_t i = 0; i < count; ++i) {
          hexad_reply& reply = out->replies[i];
          reply.content = take_text(in, *texts, &reply.content_size);
          reply.role = take_text(in, *texts);
          reply.state = take_text(in, *texts, &reply.state_size);
        }
        for (int64_t i = 0; i < count; ++i) out->answers[i].text = take_text(in, *texts, &out->answers[i].size);
      });
}

}  // namespace

void add_environment(ConfinedPlugin& plugin, Reader& facts) {
  const auto made = std::make_shared<EnvironmentFacts>();
  hexad_environment_vtable& vtable = made->vtable;
  vtable.struct_size = HEXAD_STRUCT_SIZE(hexad_environment_vtable, score);
  vtable.caps = facts.get<uint64_t>() & HEXAD_CAP_NONDETERMINISTIC;
  vtable.num_components = facts.get<uint32_t>();
  for (uint32_t i = 0; i < vtable.num_components; ++i) made->components.push_back(plugin.keep(facts.text()));
  vtable.components = made->components.data();
  vtable.create = create<hexad_environment>;
  vtable.destroy = destroy<hexad_environment>;
  vtable.score = environment_score;
  plugin.desc.struct_size = HEXAD_STRUCT_SIZE(hexad_plugin_desc, environment);
  plugin.desc.environment = &vtable;
  plugin.of_kind = made;
}

}  // namespace hexad::plugin::confined
