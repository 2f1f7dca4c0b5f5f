/* -sum(mask * advantage * logprob) * scale / N, valid as C and as C++; macros break it (verify_test.cpp). */
#include <hexad/abi.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifndef BEFORE
#define BEFORE
#endif
#ifndef QUERY_BODY
#define QUERY_BODY
#endif
#ifndef CREATE_BEGIN
#define CREATE_BEGIN
#endif
#ifndef CREATE_END
#define CREATE_END
#endif
#ifndef ON_CONFIG_ERROR
#define ON_CONFIG_ERROR \
  free(self);           \
  return code;
#endif
#ifndef ON_METRIC_ERROR
#define ON_METRIC_ERROR return code;
#endif
#ifndef COMPUTE_BEGIN
#define COMPUTE_BEGIN
#endif
#ifndef COMPUTE_END
#define COMPUTE_END
#endif
#ifndef SUM
#define SUM double
#endif
#ifndef LOGP
#define LOGP logp[t]
#endif
#ifndef WEIGHT
#define WEIGHT (self->scale * mask[t] / batch->global_valid_tokens)
#endif
#ifndef GRAD
#define GRAD (float)(-w * A[t])
#endif
#ifndef VTABLE_SIZE
#define VTABLE_SIZE HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load)
#endif
#ifndef VERSION
#define VERSION "1.2.0"
#endif
#ifndef NUM_METRICS
#define NUM_METRICS 0
#endif
#ifndef SECOND_INPUT
#define SECOND_INPUT "advantages"
#endif
#ifdef __cplusplus
extern "C" {
#endif
BEFORE
struct hexad_loss {
  const hexad_host* host;
  double scale;
};
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  hexad_loss* self = (hexad_loss*)calloc(1, sizeof(hexad_loss));
  hexad_code code;
  self->host = host;
  self->scale = 1;
  CREATE_BEGIN
  code = host->config_f64(call, config, "scale", &self->scale);
  if (code) {
    ON_CONFIG_ERROR
  }
  CREATE_END
  *out = self;
  return HEXAD_OK;
}
static void destroy(hexad_loss* self) { free(self); }
static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  const float *logp = HEXAD_F32(batch->inputs[0].tensor), *A = HEXAD_F32(batch->inputs[1].tensor);
  const float* mask = HEXAD_F32(batch->inputs[2].tensor);
  float* grad = HEXAD_F32(out->grads[0]);
  SUM sum = 0;
  hexad_code code;
  int64_t t;
  COMPUTE_BEGIN
  for (t = 0; t < batch->num_tokens; t++) {
    const double w = WEIGHT;
    sum -= w * A[t] * LOGP;
    grad[t] = GRAD;
  }
  *HEXAD_F64(out->loss) = sum;
  code = self->host->metric(call, "tokens", (double)batch->num_tokens, 1, HEXAD_REDUCE_SUM);
  if (code) {
    ON_METRIC_ERROR
  }
  COMPUTE_END
  return HEXAD_OK;
}
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
    {SECOND_INPUT, HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"token_mask", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0}};
static const hexad_metric_spec metrics[] = {{"share", HEXAD_REDUCE_MEAN, 0}};
static const hexad_loss_vtable vtable = {(uint32_t)(VTABLE_SIZE),
                                         3,
                                         NUM_METRICS,
                                         0,
                                         HEXAD_CAP_HOST_MEM,
                                         inputs,
                                         metrics,
                                         create,
                                         destroy,
                                         compute,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL};
#ifndef NO_QUERY
__attribute__((visibility("default"))) const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* host) {
  static const hexad_plugin_desc desc = {HEXAD_STRUCT_SIZE(hexad_plugin_desc, next),
                                         0,
                                         0,
                                         HEXAD_KIND_LOSS,
                                         "toy",
                                         VERSION,
                                         "MIT",
                                         "",
                                         NULL,
                                         NULL,
                                         &vtable,
                                         NULL};
  (void)host;
  QUERY_BODY
  return &desc;
}
#endif
#ifdef __cplusplus
}
#endif
