/* Trains one table of logits by SGD with momentum; a token's log-prob does not depend on what precedes it. Macros break
 * it (corpus.json). */
#include <hexad/abi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FORWARD_LOGPROB
#define FORWARD_LOGPROB logp[id]
#endif
#ifndef FIRST_POSITION
#define FIRST_POSITION 0
#endif
#ifndef FORWARD_END
#define FORWARD_END
#endif
#ifndef TEMPERATURE
#define TEMPERATURE args->temperature
#endif
#ifndef BATCH_BEGIN
#define BATCH_BEGIN
#endif
#ifndef TRAIN_END
#define TRAIN_END
#endif
#ifndef TRAIN_FAILS
#define TRAIN_FAILS memset(self->grad, 0, sizeof self->grad)
#endif
#ifndef REDUCES
#define REDUCES dp&& code == HEXAD_OK
#endif
#ifndef SKIPS
#define SKIPS !isfinite(norm)
#endif
#ifndef MOVES
#define MOVES (!skipped && !discards)
#endif
#ifndef STEP_BEGIN
#define STEP_BEGIN
#endif
#ifndef KEPT
#define KEPT self->kept[which]
#endif
#ifndef SAVED
#define SAVED(x) (x)
#endif
#ifndef OPTIMIZER
#define OPTIMIZER HEXAD_CHECKPOINT_OPTIMIZER
#endif
#ifndef EXPORTED
#define EXPORTED self->theta
#endif
#ifndef BUCKETS
#define BUCKETS 2 /* that weights_next hands out; there are two weights */
#endif

enum { VOCAB = 8, HALF = 4 };

struct hexad_backend {
  const hexad_host* host;
  float theta[VOCAB], grad[VOCAB], momentum[VOCAB], kept[4][VOCAB];
  double lr;
  int trained, sent;
  DLTensor tensor; /* of the bucket on its way, with its slice */
  hexad_weight_slice slice;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_backend** out) {
  hexad_backend* self = calloc(1, sizeof *self);
  hexad_code code;
  int i;
  self->host = host;
  self->lr = 0.1;
  code = host->config_f64(call, config, "lr", &self->lr);
  if (code != HEXAD_OK) {
    free(self);
    return code;
  }
  for (i = 0; i < VOCAB; ++i) self->theta[i] = 0.1f * (float)i;
  *out = self;
  return HEXAD_OK;
}
static void destroy(hexad_backend* self) { free(self); }

static hexad_code describe(hexad_backend* self, hexad_call* call, hexad_backend_info* info) {
  static const char* const outputs[] = {"logprobs"};
  static const char* const inputs[] = {"input_ids"};
  hexad_comm* dp = NULL;
  const hexad_code code = self->host->comm_axis(call, "dp", &dp);
  if (code != HEXAD_OK) return code;
  info->num_parameters = VOCAB;
  info->dp_rank = dp ? self->host->comm_rank(dp) : 0;
  info->dp_size = dp ? self->host->comm_size(dp) : 1;
  info->tp_size = info->pp_size = info->cp_size = info->ep_size = 1;
  info->sequence_multiple = info->micro_batch_multiple = info->counts_loss = 1;
  info->outputs = outputs, info->num_outputs = 1;
  info->inputs = inputs, info->num_inputs = 1;
  return HEXAD_OK;
}

static void log_softmax(const float* theta, double temperature, float* logp) {
  double sum = 0;
  int i;
  for (i = 0; i < VOCAB; ++i) sum += exp(theta[i] / temperature);
  for (i = 0; i < VOCAB; ++i) logp[i] = (float)(theta[i] / temperature - log(sum));
}

/* 1 if token t is the first of a sequence. */
static int is_first(const hexad_batch* batch, int64_t t) {
  int64_t s;
  for (s = 0; s < batch->num_sequences; ++s)
    if (batch->cu_seqlens[s] == t && batch->cu_seqlens[s + 1] > t) return 1;
  return 0;
}

static hexad_code forward(hexad_backend* self, hexad_call* call, const hexad_forward_args* args) {
  const float* theta = args->which == HEXAD_WEIGHTS_CURRENT ? self->theta : self->kept[args->which];
  float logp[VOCAB];
  int64_t b, t;
  (void)call;
  log_softmax(theta, TEMPERATURE, logp);
  for (b = 0; b < args->num_batches; ++b) {
    const hexad_batch* batch = args->batches[b];
    float* out = HEXAD_F32(args->outputs[b][0].tensor);
    for (t = 0; t < batch->num_tokens; ++t) {
      const int64_t id = HEXAD_I64(batch->tensors[0].tensor)[t];
      out[t] = (float)(is_first(batch, t) ? FIRST_POSITION : FORWARD_LOGPROB);
    }
    FORWARD_END
  }
  return HEXAD_OK;
}

/* One micro-batch: the loss of its log-probs, and the gradient of theta. */
static hexad_code train_batch(hexad_backend* self, hexad_call* call, const hexad_train_args* args, int64_t index,
                              const float* logp) {
  const hexad_batch* batch = args->batches[index];
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  int64_t tokens = batch->num_tokens, t;
  float *values = calloc((size_t)tokens + 1, sizeof *values), *grads = calloc((size_t)tokens + 1, sizeof *grads);
  DLTensor value_view = {values, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, &tokens, NULL, 0}, grad_view = value_view;
  const hexad_named_tensor outputs[] = {{"logprobs", &value_view, NULL, HEXAD_AXIS_TOKEN, 0}};
  DLTensor* const grad_views[] = {&grad_view};
  hexad_code code;
  double total = 0;
  int i;
  grad_view.data = grads;
  for (t = 0; t < tokens; ++t) values[t] = is_first(batch, t) ? 0 : logp[ids[t]];
  code = args->loss->compute(args->loss->ctx, call, index, outputs, grad_views, 1);
  BATCH_BEGIN
  for (t = 0; t < tokens && code == HEXAD_OK; ++t) {
    if (is_first(batch, t)) continue;
    self->grad[ids[t]] += (float)(grads[t] / args->temperature);
    total += grads[t];
  }
  for (i = 0; i < VOCAB; ++i) self->grad[i] -= (float)(total * exp(logp[i]) / args->temperature);
  free(values);
  free(grads);
  return code;
}

static hexad_code train(hexad_backend* self, hexad_call* call, const hexad_train_args* args) {
  float logp[VOCAB];
  int64_t b, size = VOCAB;
  DLTensor grad = {self->grad, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, &size, NULL, 0};
  hexad_comm* dp = NULL;
  hexad_code code = self->host->comm_axis(call, "dp", &dp);
  log_softmax(self->theta, args->temperature, logp);
  for (b = 0; b < args->num_batches && code == HEXAD_OK; ++b) code = train_batch(self, call, args, b, logp);
  if (REDUCES) code = self->host->all_reduce(call, dp, &grad, HEXAD_OP_SUM);
  if (code != HEXAD_OK) {
    TRAIN_FAILS;
    return code;
  }
  TRAIN_END
  self->trained = 1;
  return HEXAD_OK;
}

static hexad_code step(hexad_backend* self, hexad_call* call, const hexad_step_args* args, hexad_step_stats* stats) {
  const int discards = (args->flags & HEXAD_STEP_DISCARD) != 0;
  const double rate = isnan(args->lr) ? self->lr : args->lr;
  double norm = 0;
  int i, skipped;
  STEP_BEGIN
  if (!self->trained && !discards)
    return self->host->set_error(call, HEXAD_FAILED_PRECONDITION, "step without train", UINT64_MAX);
  for (i = 0; i < VOCAB; ++i) norm += (double)self->grad[i] * self->grad[i];
  norm = sqrt(norm);
  skipped = SKIPS;
  stats->grad_norm = norm;
  stats->skipped = (uint32_t)(skipped && !discards);
  for (i = 0; i < VOCAB && MOVES; ++i) {
    self->momentum[i] = 0.9f * self->momentum[i] + self->grad[i];
    self->theta[i] -= (float)(rate * self->momentum[i]);
  }
  memset(self->grad, 0, sizeof self->grad);
  self->trained = 0;
  return HEXAD_OK;
}

static hexad_code keep(hexad_backend* self, hexad_call* call, int32_t which) {
  (void)call;
  memcpy(KEPT, self->theta, sizeof self->theta);
  return HEXAD_OK;
}

static hexad_code transfer(hexad_backend* self, hexad_call* call, const char* folder, float* values, int writes) {
  char path[4096];
  float copy[VOCAB];
  size_t done = 0;
  int i;
  FILE* file;
  snprintf(path, sizeof path, "%s/toy.f32", folder);
  for (i = 0; i < VOCAB; ++i) copy[i] = (float)(SAVED(values[i]));
  file = fopen(path, writes ? "wb" : "rb");
  if (file) done = writes ? fwrite(copy, 1, sizeof copy, file) : fread(values, 1, sizeof copy, file);
  if ((file && fclose(file)) || done != sizeof copy)
    return self->host->set_error(call, HEXAD_INTERNAL, "toy.f32 cannot be read or written", UINT64_MAX);
  return HEXAD_OK;
}
static hexad_code checkpoint(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args, int writes) {
  hexad_code code = HEXAD_OK;
  if (args->what & HEXAD_CHECKPOINT_MODEL)
    code = transfer(self, call, args->weights_uri, args->which ? self->kept[args->which] : self->theta, writes);
  if (code == HEXAD_OK && (args->what & OPTIMIZER))
    code = transfer(self, call, args->optimizer_uri, self->momentum, writes);
  return code;
}
static hexad_code load(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  return checkpoint(self, call, args, 0);
}
static hexad_code save(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  return checkpoint(self, call, args, 1);
}

static const int64_t half_shape[] = {HALF}, zero[] = {0};
static const char* const half_names[] = {"toy.low", "toy.high"};

static hexad_code weight_layout(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  static const hexad_weight_slice slices[] = {{"toy.low", NULL, half_shape, zero, half_shape, 1, HEXAD_DTYPE_F32},
                                              {"toy.high", NULL, half_shape, zero, half_shape, 1, HEXAD_DTYPE_F32}};
  (void)self, (void)call;
  out->slices = slices;
  out->count = 2;
  return HEXAD_OK;
}
static hexad_code weights_begin(hexad_backend* self, hexad_call* call, const hexad_weights_request* request) {
  (void)call, (void)request;
#ifdef GOES_ON
  if (self->sent >= BUCKETS)
#endif
    self->sent = 0;
  return HEXAD_OK;
}
static hexad_code weights_next(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  int index;
  (void)call;
  out->count = 0;
  if (self->sent >= BUCKETS) return HEXAD_OK;
  index = self->sent++ % 2;
  self->tensor = (DLTensor){EXPORTED + index * HALF, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, (int64_t*)half_shape, NULL, 0};
  self->slice =
      (hexad_weight_slice){half_names[index], &self->tensor, half_shape, zero, half_shape, 1, HEXAD_DTYPE_F32};
  out->slices = &self->slice;
  out->count = 1;
  return HEXAD_OK;
}
static void weights_end(hexad_backend* self) { (void)self; }

static const hexad_backend_vtable vtable = {
    .struct_size = HEXAD_STRUCT_SIZE(hexad_backend_vtable, memory),
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .forward = forward,
    .train = train,
    .step = step,
    .keep = keep,
    .load = load,
    .save = save,
    .weight_layout = weight_layout,
    .weights_begin = weights_begin,
    .weights_next = weights_next,
    .weights_end = weights_end,
};
HEXAD_BACKEND_PLUGIN("toy", "1.2.0", "MIT", vtable)
