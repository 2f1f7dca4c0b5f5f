// A loss in the process of a confined plugin.
#include <vector>

#include "core/plugin/confined/serve/kind_server.hpp"

namespace hexad::plugin::confined {
namespace {

hexad_code serve_compute(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  auto batch = call.in.get<hexad_loss_batch>();
  batch.cu_seqlens = call.array<int64_t>();
  const std::vector<hexad_named_tensor> inputs = call.named_tensors();
  batch.inputs = inputs.data();
  hexad_loss_out out{};
  out.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_out, metrics);
  out.loss = call.output();
  std::vector<DLTensor*> grads(static_cast<size_t>(call.in.get<int64_t>()));
  for (DLTensor*& grad : grads) grad = call.output();
  out.grads = grads.data();
  out.num_grads = static_cast<int64_t>(grads.size());
  out.metrics = call.output();
  return vtable.compute(self, call.handle(), &batch, &out);
}

hexad_code serve_plan(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  auto plan = call.in.get<hexad_loss_plan>();
  const hexad_code code = vtable.plan(self, call.handle(), &plan);
  call.out.put(plan);
  return code;
}

hexad_code serve_advantages(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  auto rollout = call.in.get<hexad_batch>();
  rollout.cu_seqlens = call.array<int64_t>();
  const std::vector<hexad_named_tensor> tensors = call.named_tensors();
  rollout.tensors = tensors.data();
  return vtable.advantages(self, call.handle(), &rollout, call.output());
}

hexad_code serve_end_step(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  const std::vector<double> values = call.in.array<double>();
  std::vector<std::string> texts;
  for (size_t i = 0; i < values.size(); ++i) texts.push_back(call.in.text());
  std::vector<const char*> names;
  for (const std::string& text : texts) names.push_back(text.c_str());
  hexad_step_metrics metrics{};
  metrics.struct_size = HEXAD_STRUCT_SIZE(hexad_step_metrics, count);
  metrics.names = names.data();
  metrics.values = values.data();
  metrics.count = static_cast<int64_t>(values.size());
  return vtable.end_step(self, call.handle(), &metrics);
}

hexad_code serve_state_save(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  const auto sink = [](void* lane, const void* bytes, uint64_t size) -> hexad_code {
    hexad_code code = HEXAD_OK;
    std::string text;
    static_cast<ServedLane*>(lane)->ask(kSink, std::string(static_cast<const char*>(bytes), size), code, text);
    return code;
  };
  return vtable.state_save(self, call.handle(), sink, &call.lane);
}

hexad_code serve_state_load(const hexad_loss_vtable& vtable, hexad_loss* self, ServedCall& call) {
  const std::vector<char> state = call.in.array<char>();
  return vtable.state_load(self, call.handle(), state.data(), state.size());
}

const InstanceServer<hexad_loss_vtable, hexad_loss>::Functions& loss_functions() {
  static const InstanceServer<hexad_loss_vtable, hexad_loss>::Functions all = {
      {"compute", serve_compute},       {"plan", serve_plan},
      {"advantages", serve_advantages}, {"end_step", serve_end_step},
      {"state_save", serve_state_save}, {"state_load", serve_state_load}};
  return all;
}

class LossServer : public InstanceServer<hexad_loss_vtable, hexad_loss> {
 public:
  explicit LossServer(const LoadedPlugin& plugin) : InstanceServer(plugin, plugin.desc->loss, loss_functions()) {}

  void facts(Writer& out) const override {
    out.put(vtable_.caps);
    out.put(vtable_.num_inputs);
    for (uint32_t i = 0; i < vtable_.num_inputs; ++i) {
      out.put(vtable_.inputs[i]);
      out.text(vtable_.inputs[i].name);
    }
    out.put(vtable_.num_metrics);
    for (uint32_t i = 0; i < vtable_.num_metrics; ++i) {
      out.put(vtable_.metrics[i]);
      out.text(vtable_.metrics[i].name);
    }
    const hexad_loss_vtable* table = &vtable_;
    out.put(uint8_t{HEXAD_HAS(table, plan) && table->plan});
    out.put(uint8_t{HEXAD_HAS(table, advantages) && table->advantages});
    out.put(uint8_t{HEXAD_HAS(table, end_step) && table->end_step});
    out.put(uint8_t{HEXAD_HAS(table, state_save) && table->state_save});
    out.put(uint8_t{HEXAD_HAS(table, state_load) && table->state_load});
  }
};

}  // namespace

std::unique_ptr<KindServer> serve_loss(const LoadedPlugin& plugin) { return std::make_unique<LossServer>(plugin); }

}  // namespace hexad::plugin::confined
