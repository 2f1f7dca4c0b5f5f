// An environment in the process of a confined plugin.
#include <vector>

#include "core/plugin/confined/serve/kind_server.hpp"

namespace hexad::plugin::confined {
namespace {

using Environments = InstanceServer<hexad_environment_vtable, hexad_environment>;

// Samples and all that they point to.
struct Samples {
  explicit Samples(ServedCall& call) : list(static_cast<size_t>(call.in.get<int64_t>())) {
    for (hexad_sample& sample : list) {
      sample = call.in.get<hexad_sample>();
      for (const char** text :
           {&sample.prompt, &sample.response, &sample.ground_truth, &sample.metadata, &sample.state})
        *text = texts.emplace_back(call.in.text()).c_str();
      sample.tokens = call.array<int64_t>();
      pointers.push_back(&sample);
    }
  }
  std::vector<hexad_sample> list;
  std::deque<std::string> texts;
  std::vector<const hexad_sample*> pointers;
};

void put_text(Writer& out, const char* text, uint64_t size) {
  out.put(uint8_t{text != nullptr});
  if (text) out.text({text, size});
}

hexad_code serve_score(const hexad_environment_vtable& vtable, hexad_environment* self, ServedCall& call) {
  const Samples samples(call);
  const size_t count = samples.list.size();
  std::vector<float> rewards(count), components(count * vtable.num_components);
  std::vector<uint8_t> invalid(count);
  std::vector<hexad_reply> replies(count);
  std::vector<hexad_answer> answers(count);
  hexad_scores scores{};
  scores.struct_size = HEXAD_STRUCT_SIZE(hexad_scores, answers);
  scores.rewards = rewards.data();
  scores.invalid = invalid.data();
  scores.components = components.data();
  scores.replies = replies.data();
  scores.answers = answers.data();
  const hexad_code code =
      vtable.score(self, call.handle(), samples.pointers.data(), static_cast<int64_t>(count), &scores);
  call.out.array(rewards.data(), static_cast<int64_t>(rewards.size()));
  call.out.array(invalid.data(), static_cast<int64_t>(invalid.size()));
  call.out.array(components.data(), static_cast<int64_t>(components.size()));
  const bool whole = code == HEXAD_OK;  // of an error nobody knows where the texts are
  for (const hexad_reply& reply : replies) {
    put_text(call.out, whole ? reply.content : nullptr, reply.content_size);
    call.out.optional_text(whole ? reply.role : nullptr);
    put_text(call.out, whole ? reply.state : nullptr, reply.state_size);
  }
  for (const hexad_answer& answer : answers) put_text(call.out, whole ? answer.text : nullptr, answer.size);
  return code;
}

const Environments::Functions& environment_functions() {
  static const Environments::Functions all = {{"score", serve_score}};
  return all;
}

class EnvironmentServer : public Environments {
 public:
  explicit EnvironmentServer(const LoadedPlugin& plugin)
      : InstanceServer(plugin, plugin.desc->environment, environment_functions()) {}

  void facts(Writer& out) const override {
    out.put(vtable_.caps);
    out.put(vtable_.num_components);
    for (uint32_t i = 0; i < vtable_.num_components; ++i) out.text(vtable_.components[i]);
  }
};

}  // namespace

std::unique_ptr<KindServer> serve_environment(const LoadedPlugin& plugin) {
  return std::make_unique<EnvironmentServer>(plugin);
}

}  // namespace hexad::plugin::confined
