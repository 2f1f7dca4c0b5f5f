#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_kwargs(Schema& s) {
  const std::string at = "policy.optimizer.kwargs";
  s.section(at, "arguments of the optimizer");
  s.add(at + ".lr", kFloat, "5e-06", "learning rate").at_least(0).for_backend();
  s.add(at + ".weight_decay", kFloat, "0.01", "weight decay").at_least(0).for_backend();
  s.add(at + ".betas", kList, "[0.9, 0.999]", "decay rates of Adam's moments").elements(kFloat).not_filled();
  s.add(at + ".eps", kFloat, "1e-08", "added to Adam's denominator").at_least(0).not_filled();
  s.add(at + ".amsgrad", kBool, "false", "the AMSGrad variant").not_filled();
  s.add(at + ".maximize", kBool, "false", "go up the gradient").not_filled();
  s.add(at + ".momentum", kFloat, "0", "SGD: momentum").at_least(0).not_filled();
  s.add(at + ".dampening", kFloat, "0", "SGD: dampening of the momentum").not_filled();
  s.add(at + ".nesterov", kBool, "false", "SGD: Nesterov's momentum").not_filled();
  for (const char* key : {"foreach", "fused", "capturable", "differentiable"}) {
    s.add(at + "." + key, kBool | kNull, "null", "which of PyTorch's implementations")
        .accepted("there is one implementation of the optimizer");
  }
  for (const char* key : {"master_weights", "store_param_remainders", "exp_avg_dtype", "exp_avg_sq_dtype"}) {
    s.add(at + "." + key, kAny, "", "state of Transformer Engine's FusedAdam")
        .accepted("master weights and moments are float32");
  }
}

}  // namespace

void add_optimizer(Schema& s) {
  s.section("policy.optimizer", "the optimizer, where the backend has no keys of its own for it", kMap | kNull);
  s.add("policy.optimizer.name", kText, "torch.optim.AdamW", "PyTorch's name of it")
      .one_of({"torch.optim.AdamW", "torch.optim.Adam", "torch.optim.SGD",
               "transformer_engine.pytorch.optimizers.fused_adam.FusedAdam"})
      .not_built({"dion.Muon", "dion.Dion"});
  add_kwargs(s);
  s.add("policy.scheduler", kList | kMap | kNull, "",
        "learning-rate schedule, stepped once a step: one {name, kwargs}, or a list of them with one {milestones} that "
        "says after how many steps the next takes over; absent: constant");
  s.add("policy.scheduler.name", kText, "", "PyTorch's name, e.g. torch.optim.lr_scheduler.LinearLR");
  s.add("policy.scheduler.kwargs", kMap, "", "its arguments").open();
  s.add("policy.scheduler.milestones", kList, "", "steps at which the next schedule begins").elements(kInt);
}

}  // namespace hexad::config
