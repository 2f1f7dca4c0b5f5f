/* A loss plugin in C: PPO's clipped policy gradient, -sum(m * min(r * A, clip(r) * A)) / N, 
   r = exp(logp - old logp). */
#include <hexad/abi.h>
#include <math.h>
#include <stdlib.h>

struct hexad_loss {
  double eps;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  hexad_loss* self = calloc(1, sizeof *self);
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->eps = 0.2;
  hexad_code code = host->config_f64(call, config, "clip_eps", &self->eps); /* absent: keeps 0.2 */
  if (code != HEXAD_OK) {
    free(self);
    return code; /* the host has the text already */
  }
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_loss* self) { free(self); }

/* What the loss needs, in this order; compute receives it so. */
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
    {"prev_logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"advantages", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"token_mask", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
};
static const hexad_metric_spec metrics[] = {{"clip_frac", HEXAD_REDUCE_MEAN, 0}};

static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  const float *logp = HEXAD_F32(batch->inputs[0].tensor), *old = HEXAD_F32(batch->inputs[1].tensor);
  const float *A = HEXAD_F32(batch->inputs[2].tensor), *mask = HEXAD_F32(batch->inputs[3].tensor);
  float* grad = HEXAD_F32(out->grads[0]);
  double *loss = HEXAD_F64(out->loss), *clip_frac = HEXAD_F64(out->metrics);
  const double low = 1 - self->eps, high = 1 + self->eps;
  (void)call;
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    /* The first position of a sequence has no log-prob. */
    for (int64_t t = batch->cu_seqlens[b] + 1; t < batch->cu_seqlens[b + 1]; t++) {
      const double r = exp((double)logp[t] - old[t]), w = mask[t] / batch->global_valid_tokens;
      const int clip = (A[t] > 0 && r > high) || (A[t] < 0 && r < low);
      *loss -= w * A[t] * (clip ? (A[t] > 0 ? high : low) : r);
      grad[t] = clip ? 0.0f : (float)(-w * A[t] * r); /* d loss / d logp[t] */
      clip_frac[0] += mask[t] * clip;
      clip_frac[1] += mask[t];
    }
  }
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
};
HEXAD_LOSS_PLUGIN("ppo_clip_c", "1.0.0", "Apache-2.0", vtable)
