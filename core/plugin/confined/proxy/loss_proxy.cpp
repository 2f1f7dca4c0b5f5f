// The loss vtable of a confined loss.
#include <vector>

#include "lib/base/error.hpp"
#include "core/plugin/confined/proxy/proxy.hpp"

namespace hexad::plugin::confined {
namespace {

// One at a time per instance and in order, as class C and L promise: nothing here needs a lock.
hexad_code loss_compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  return invoke(self, call, "compute", [&](Request& request) {
    request.arguments.put(*batch);
    request.arguments.array(batch->cu_seqlens, batch->num_sequences + 1);
    request.in(batch->inputs, batch->num_inputs);
    request.out(out->loss);
    request.arguments.put(out->num_grads);
    for (int64_t i = 0; i < out->num_grads; ++i) request.out(out->grads[i]);
    request.out(out->metrics);
  });
}

hexad_code loss_plan(hexad_loss* self, hexad_call* call, hexad_loss_plan* plan) {
  return invoke(
      self, call, "plan", [&](Request& request) { request.arguments.put(*plan); },
      [&](Reader& in) {
        const auto used = in.get<hexad_loss_plan>();
        plan->used_inputs = used.used_inputs;
        plan->used_metrics = used.used_metrics;
      });
}

hexad_code loss_advantages(hexad_loss* self, hexad_call* call, const hexad_batch* rollout, DLTensor* out) {
  return invoke(self, call, "advantages", [&](Request& request) {
    request.arguments.put(*rollout);
    request.arguments.array(rollout->cu_seqlens, rollout->num_sequences + 1);
    request.in(rollout->tensors, rollout->num_tensors);
    request.out(out);
  });
}

hexad_code loss_end_step(hexad_loss* self, hexad_call* call, const hexad_step_metrics* metrics) {
  return invoke(self, call, "end_step", [&](Request& request) {
    request.arguments.array(metrics->values, metrics->count);
    for (int64_t i = 0; i < metrics->count; ++i) request.arguments.text(metrics->names[i]);
  });
}

hexad_code loss_state_save(hexad_loss* self, hexad_call* call, hexad_sink sink, void* ctx) {
  return invoke(self, call, "state_save", [&](Request& request) { request.sink = sink, request.sink_ctx = ctx; });
}

hexad_code loss_state_load(hexad_loss* self, hexad_call* call, const void* bytes, uint64_t size) {
  return invoke(self, call, "state_load", [&](Request& request) {
    request.arguments.array(static_cast<const char*>(bytes), static_cast<int64_t>(size));
  });
}

struct LossFacts {
  hexad_loss_vtable vtable{};
  std::vector<hexad_tensor_spec> inputs;
  std::vector<hexad_metric_spec> metrics;
};

}  // namespace

void add_loss(ConfinedPlugin& plugin, Reader& facts) {
  const auto made = std::make_shared<LossFacts>();
  hexad_loss_vtable& vtable = made->vtable;
  vtable.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load);
  // Host memory alone, and so nothing under graph capture.
  vtable.caps = facts.get<uint64_t>() & (HEXAD_CAP_HOST_MEM | HEXAD_CAP_NONDETERMINISTIC);
  vtable.num_inputs = facts.get<uint32_t>();
  for (uint32_t i = 0; i < vtable.num_inputs; ++i) {
    auto spec = facts.get<hexad_tensor_spec>();
    spec.name = plugin.keep(facts.text());
    made->inputs.push_back(spec);
  }
  vtable.num_metrics = facts.get<uint32_t>();
  for (uint32_t i = 0; i < vtable.num_metrics; ++i) {
    auto spec = facts.get<hexad_metric_spec>();
    spec.name = plugin.keep(facts.text());
    made->metrics.push_back(spec);
  }
  vtable.inputs = made->inputs.data();
  vtable.metrics = made->metrics.data();
  vtable.create = create<hexad_loss>;
  vtable.destroy = destroy<hexad_loss>;
  vtable.compute = loss_compute;
  if (facts.has()) vtable.plan = loss_plan;
  if (facts.has()) vtable.advantages = loss_advantages;
  if (facts.has()) vtable.end_step = loss_end_step;
  if (facts.has()) vtable.state_save = loss_state_save;
  if (facts.has()) vtable.state_load = loss_state_load;
  plugin.desc.loss = &vtable;
  plugin.of_kind = made;
  if (!(vtable.caps & HEXAD_CAP_HOST_MEM)) {
    fail(ErrorKind::plugin,
         "loss '{0}' takes CUDA memory alone, and a process of its own has host memory only. Remove '{0}' from "
         "plugins.own_process",
         plugin.desc.name ? plugin.desc.name : "");
  }
}

}  // namespace hexad::plugin::confined
