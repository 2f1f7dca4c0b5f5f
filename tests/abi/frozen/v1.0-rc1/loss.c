/* Frozen with v1.0-rc1: a quadratic policy loss that uses most services of the host.
 *
 *   loss = sum mask * (scale * d^2 / 2 - A * d) / global_valid_tokens,   d = logprobs - prev_logprobs
 *
 * Additions and multiplications only, so that its numbers are the same wherever IEEE 754 is. */
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>

struct hexad_loss {
  const hexad_host* host;
  double scale;
  int64_t boost; /* scale is multiplied by it */
  int32_t clamp; /* 1: d is at most 1 */
  int32_t is_squared;
  double state[2]; /* compute calls so far, last "kl" that end_step saw: what a checkpoint holds */
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  hexad_loss* self = calloc(1, sizeof *self);
  const char *form = "squared", *nested = NULL;
  hexad_code code;
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->host = host;
  self->scale = 1;
  self->boost = 1;
  if ((code = host->config_f64(call, config, "scale", &self->scale)) != HEXAD_OK ||
      (code = host->config_i64(call, config, "boost", &self->boost)) != HEXAD_OK ||
      (code = host->config_bool(call, config, "clamp", &self->clamp)) != HEXAD_OK ||
      (code = host->config_str(call, config, "form", &form)) != HEXAD_OK ||
      (code = host->config_json(call, config, "nested", &nested)) != HEXAD_OK) {
    free(self);
    return code;
  }
  self->is_squared = strcmp(form, "squared") == 0;
  if (nested && strcmp(nested, "{\"a\":[1,2]}") != 0) {
    free(self);
    return host->set_error(call, HEXAD_INVALID_ARGUMENT, "nested is not {\"a\":[1,2]} and more", 25);
  }
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_loss* self) { free(self); }

static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
    {"prev_logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"advantages", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"token_mask", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"reference_policy_logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_OPTIONAL, 0},
};
static const hexad_metric_spec metrics[] = {
    {"mean_d", HEXAD_REDUCE_MEAN, 0}, {"max_d", HEXAD_REDUCE_MAX, 0}, {"dropped", HEXAD_REDUCE_SUM, 0}};

static hexad_code plan(hexad_loss* self, hexad_call* call, hexad_loss_plan* plan) {
  (void)self, (void)call;
  if (HEXAD_HAS(plan, used_inputs)) plan->used_inputs &= ~(uint64_t)16;
  if (HEXAD_HAS(plan, used_metrics)) plan->used_metrics &= ~(uint64_t)4;
  return HEXAD_OK;
}

/* What the host says of this call, as metrics. */
static hexad_code report(hexad_loss* self, hexad_call* call) {
  const hexad_host* host = self->host;
  static const int32_t ids[] = {5, 6, 7};
  int32_t device_type = -1, device_id = -1;
  hexad_comm* comm = NULL;
  char text[16];
  uint64_t size = sizeof text;
  hexad_code code;
  if ((code = host->device(call, &device_type, &device_id)) != HEXAD_OK ||
      (code = host->comm_axis(call, "dp", &comm)) != HEXAD_OK ||
      (code = host->detokenize(call, ids, 3, text, &size)) != HEXAD_OK)
    return code;
  const struct {
    const char* name;
    double value;
  } facts[] = {
      {"step", (double)host->step(call)},
      {"deterministic", (host->flags(call) & HEXAD_CALL_DETERMINISTIC) != 0},
      {"cancelled", host->cancelled(call)},
      {"no_deadline", host->deadline_ns(call) == INT64_MAX},
      {"is_cpu", device_type == kDLCPU && device_id == 0},
      {"no_stream", host->stream(call, device_type, device_id) == NULL},
      {"alone", comm == NULL},
      {"text_bytes", (double)size},
      {"text_first", text[0]},
      {"no_extension", host->extension("hexad.ext.unheard_of", 1) == NULL},
      {"has_version", host->version && host->version[0]},
      {"last_kl", self->state[1]},
  };
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    if ((code = host->metric(call, facts[i].name, facts[i].value, 1, HEXAD_REDUCE_LAST)) != HEXAD_OK) return code;
  if (host->log_enabled(HEXAD_LOG_DEBUG)) host->log(call, HEXAD_LOG_DEBUG, "frozen loss", 6);
  return HEXAD_OK;
}

static void accumulate(const hexad_loss* self, const hexad_loss_batch* batch, const double* d, hexad_loss_out* out) {
  const float *advantages = HEXAD_F32(batch->inputs[2].tensor), *mask = HEXAD_F32(batch->inputs[3].tensor);
  float* grad = HEXAD_F32(out->grads[0]);
  double *loss = HEXAD_F64(out->loss), *metric = HEXAD_F64(out->metrics);
  const double scale = self->scale * (double)self->boost;
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    for (int64_t t = batch->cu_seqlens[b] + 1; t < batch->cu_seqlens[b + 1]; t++) {
      const double weight = mask[t] / batch->global_valid_tokens;
      loss[0] += weight * (self->is_squared ? scale * d[t] * d[t] / 2 : 0) - weight * advantages[t] * d[t];
      grad[t] = (float)(weight * ((self->is_squared ? scale * d[t] : 0) - advantages[t]));
      metric[0] += mask[t] * d[t], metric[1] += mask[t];
      if (metric[3] == 0 || d[t] > metric[2]) metric[2] = d[t];
      metric[3] = 1;
    }
  }
}

static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  const float *logp = HEXAD_F32(batch->inputs[0].tensor), *prev = HEXAD_F32(batch->inputs[1].tensor);
  void* scratch = NULL;
  hexad_code code;
  if (!(batch->global_valid_tokens > 0))
    return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "global_valid_tokens is not positive", UINT64_MAX);
  self->host->range_push(call, "frozen_loss");
  code = self->host->alloc(call, kDLCPU, 0, (uint64_t)batch->num_tokens * sizeof(double), &scratch);
  if (code == HEXAD_OK) {
    double* d = scratch;
    for (int64_t t = 0; t < batch->num_tokens; t++) {
      d[t] = (double)logp[t] - prev[t];
      if (self->clamp && d[t] > 1) d[t] = 1;
    }
    accumulate(self, batch, d, out);
    self->host->free(scratch, kDLCPU, 0);
    self->state[0] += 1;
    code = report(self, call);
  }
  self->host->range_pop(call);
  return code;
}

/* Advantage of every token: its sequence's reward minus the mean reward. */
static hexad_code advantages(hexad_loss* self, hexad_call* call, const hexad_batch* rollout, DLTensor* out) {
  const float* rewards = NULL;
  double mean = 0;
  for (int64_t i = 0; i < rollout->num_tensors; i++)
    if (strcmp(rollout->tensors[i].name, "rewards") == 0) rewards = HEXAD_F32(rollout->tensors[i].tensor);
  if (!rewards) return self->host->set_error(call, HEXAD_NOT_FOUND, "no rewards", UINT64_MAX);
  for (int64_t b = 0; b < rollout->num_sequences; b++) mean += rewards[b];
  mean /= (double)rollout->num_sequences;
  for (int64_t b = 0; b < rollout->num_sequences; b++)
    for (int64_t t = rollout->cu_seqlens[b]; t < rollout->cu_seqlens[b + 1]; t++)
      HEXAD_F32(out)[t] = (float)(rewards[b] - mean);
  return HEXAD_OK;
}

static hexad_code end_step(hexad_loss* self, hexad_call* call, const hexad_step_metrics* reduced) {
  (void)call;
  for (int64_t i = 0; i < reduced->count; i++)
    if (strcmp(reduced->names[i], "kl") == 0) self->state[1] = reduced->values[i];
  return HEXAD_OK;
}

static hexad_code state_save(hexad_loss* self, hexad_call* call, hexad_sink sink, void* ctx) {
  const hexad_code code = sink(ctx, &self->state[0], sizeof self->state[0]);
  (void)call;
  return code != HEXAD_OK ? code : sink(ctx, &self->state[1], sizeof self->state[1]);
}

static hexad_code state_load(hexad_loss* self, hexad_call* call, const void* bytes, uint64_t size) {
  if (size != sizeof self->state)
    return self->host->set_error(call, HEXAD_DATA_LOSS, "state has another size", UINT64_MAX);
  memcpy(self->state, bytes, sizeof self->state);
  return HEXAD_OK;
}

static const hexad_loss_vtable vtable = {
    .struct_size = HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load),
    .num_inputs = sizeof inputs / sizeof *inputs,
    .num_metrics = sizeof metrics / sizeof *metrics,
    .caps = HEXAD_CAP_HOST_MEM,
    .inputs = inputs,
    .metrics = metrics,
    .create = create,
    .destroy = destroy,
    .compute = compute,
    .plan = plan,
    .advantages = advantages,
    .end_step = end_step,
    .state_save = state_save,
    .state_load = state_load,
};
HEXAD_LOSS_PLUGIN("frozen_loss", "1.0.0", "Apache-2.0", vtable)
