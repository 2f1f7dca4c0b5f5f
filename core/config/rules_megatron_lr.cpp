// policy.megatron_cfg.scheduler: what Megatron's OptimizerParamScheduler asserts.
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const std::string kScheduler = "scheduler.";

std::optional<double> number(const MegatronRules& r, const std::string& name) { return r.c.number(r.path(name)); }

void check_rates(const MegatronRules& r) {
  const std::optional<double> lr = number(r, "optimizer.lr"), lowest = number(r, "optimizer.min_lr");
  const bool decays = r.text(kScheduler + "lr_decay_style").value_or("constant") != "constant";
  if (lr && lowest && *lowest > *lr && (r.given("optimizer.min_lr") || decays)) {
    r.error("optimizer.min_lr", fmt::format("got {}, wanted at most optimizer.lr {}; nearest: {}", *lowest, *lr, *lr));
  }
  const std::optional<double> first = number(r, kScheduler + "lr_warmup_init");
  const bool warms_up = r.integer(kScheduler + "lr_warmup_iters").value_or(0) > 0;
  if (warms_up && lr && first && *first > *lr) {
    r.error(kScheduler + "lr_warmup_init",
            fmt::format("got {}, wanted at most optimizer.lr {}; nearest: {}", *first, *lr, *lr));
  }
}

void check_steps(const MegatronRules& r) {
  const std::string decay_key = kScheduler + "lr_decay_iters", warmup_key = kScheduler + "lr_warmup_iters";
  const std::optional<int64_t> warmup = r.integer(warmup_key);
  std::optional<int64_t> decay = r.integer(decay_key);
  const Node* written = r.c.root().find(r.path(decay_key));
  if (written && written->is_null()) decay = r.c.integer(r.c.block() + ".max_num_steps");
  if (decay && *decay < 1) {
    r.error(decay_key, fmt::format("null is {}.max_num_steps, which is {}; wanted a number of steps in one of them",
                                   r.c.block(), *decay));
    return;
  }
  if (warmup && decay && *warmup >= *decay) {
    r.error(warmup_key, fmt::format("got {}, wanted fewer than the {} steps of lr_decay_iters; nearest: {}", *warmup,
                                    *decay, std::max<int64_t>(*decay - 1, 0)));
  }
  const bool wsd = r.text(kScheduler + "lr_decay_style") == "WSD";
  const std::optional<int64_t> last = r.integer(kScheduler + "lr_wsd_decay_iters");
  if (wsd && !last) {
    r.error(kScheduler + "lr_decay_style", "WSD needs lr_wsd_decay_iters, the steps of its last part; nearest: cosine");
  }
  if (wsd && last && decay && *last > *decay) {
    r.error(kScheduler + "lr_wsd_decay_iters",
            fmt::format("got {}, wanted at most lr_decay_iters {}; nearest: {}", *last, *decay, *decay));
  }
  if (!wsd && last) r.notice(kScheduler + "lr_wsd_decay_iters", "has no effect: lr_decay_style is not WSD");
}

void check_weight_decay(const MegatronRules& r) {
  const double plain = number(r, "optimizer.weight_decay").value_or(0.01);
  const double first = number(r, kScheduler + "start_weight_decay").value_or(plain);
  const double last = number(r, kScheduler + "end_weight_decay").value_or(plain);
  const std::string style = r.text(kScheduler + "weight_decay_incr_style").value_or("constant");
  if (style != "constant" && r.c.integer(r.c.block() + ".max_num_steps").value_or(1) < 1) {
    r.error(kScheduler + "weight_decay_incr_style",
            fmt::format("{} grows until {}.max_num_steps, which is -1; give a number of steps", style, r.c.block()));
  }
  if (style == "constant" && first != last) {
    r.error(kScheduler + "weight_decay_incr_style",
            fmt::format("constant, but start_weight_decay {} and end_weight_decay {} differ; nearest: linear", first,
                        last));
  }
  if (style != "constant" && last < first) {
    r.error(kScheduler + "end_weight_decay",
            fmt::format("got {}, wanted at least start_weight_decay {}; nearest: {}", last, first, first));
  }
}

}  // namespace

void check_megatron_lr(const MegatronRules& r) {
  if (!r.given("scheduler")) return;
  check_rates(r);
  check_steps(r);
  check_weight_decay(r);
}

}  // namespace hexad::config
