/* Frozen with v1.0-rc1: a backend whose model is one number a token, logprob(token) = weight[token] / temperature - 1.
 * No library functions of mathematics, so that its numbers are the same wherever IEEE 754 is. */
#include <hexad/abi.h>
#include <math.h> /* isnan */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kVocab = 4 };
static const int64_t vocab_shape[] = {kVocab}, origin[] = {0};

struct hexad_backend {
  const hexad_host* host;
  float weights[4][kVocab]; /* by HEXAD_WEIGHTS_*: the last one sums gradients */
  int32_t kept[4];
  int32_t exported; /* which weights an export carries; -1: none is left */
  uint64_t offloaded;
  DLTensor view;
  hexad_weight_slice slice;
};

static hexad_code refuse(hexad_backend* self, hexad_call* call, hexad_code code, const char* text) {
  return self->host->set_error(call, code, text, UINT64_MAX);
}

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_backend** out) {
  int64_t vocab = 0;
  const char* model = NULL;
  hexad_code code;
  if ((code = host->config_i64(call, config, "vocab_size", &vocab)) != HEXAD_OK ||
      (code = host->config_str(call, config, "model_name", &model)) != HEXAD_OK)
    return code;
  if (vocab != kVocab || !model || strcmp(model, "toy") != 0)
    return host->set_error(call, HEXAD_INVALID_ARGUMENT, "wanted vocab_size 4 and model_name toy", UINT64_MAX);
  hexad_backend* self = calloc(1, sizeof *self);
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->host = host;
  for (int i = 0; i < kVocab; i++) self->weights[HEXAD_WEIGHTS_CURRENT][i] = (float)(i + 1) / 8;
  self->kept[HEXAD_WEIGHTS_CURRENT] = self->kept[HEXAD_WEIGHTS_GRADIENTS] = 1;
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_backend* self) { free(self); }

static hexad_code describe(hexad_backend* self, hexad_call* call, hexad_backend_info* info) {
  static const char *const outputs[] = {"logprobs"}, *const inputs[] = {"input_ids"};
  hexad_comm* dp = NULL;
  const hexad_code code = self->host->comm_axis(call, "dp", &dp);
  if (code != HEXAD_OK) return code;
  info->num_parameters = kVocab;
  info->dp_rank = dp ? self->host->comm_rank(dp) : 0;
  info->dp_size = dp ? self->host->comm_size(dp) : 1;
  info->tp_size = info->pp_size = info->cp_size = info->ep_size = 1;
  info->sequence_multiple = info->micro_batch_multiple = info->counts_loss = 1;
  info->outputs = outputs;
  info->num_outputs = 1;
  info->inputs = inputs;
  info->num_inputs = 1;
  return HEXAD_OK;
}

/* The first position of a sequence holds 0. */
static hexad_code fill(hexad_backend* self, hexad_call* call, const hexad_batch* batch, int32_t which,
                       double temperature, float* out) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    for (int64_t t = batch->cu_seqlens[b]; t < batch->cu_seqlens[b + 1]; t++) {
      if (ids[t] < 0 || ids[t] >= kVocab) return refuse(self, call, HEXAD_INVALID_ARGUMENT, "a token is out of range");
      out[t] = t == batch->cu_seqlens[b] ? 0.0f : (float)(self->weights[which][ids[t]] / temperature - 1);
    }
  }
  return HEXAD_OK;
}

static hexad_code forward(hexad_backend* self, hexad_call* call, const hexad_forward_args* args) {
  hexad_code code = HEXAD_OK;
  if (args->which < 0 || args->which > HEXAD_WEIGHTS_SNAPSHOT || !self->kept[args->which])
    return refuse(self, call, HEXAD_FAILED_PRECONDITION, "these weights were never kept");
  for (int64_t b = 0; b < args->num_batches && code == HEXAD_OK; b++)
    code = fill(self, call, args->batches[b], args->which, args->temperature, HEXAD_F32(args->outputs[b][0].tensor));
  return code;
}

static void add_gradient(hexad_backend* self, const hexad_batch* batch, const float* grad, double temperature) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  for (int64_t b = 0; b < batch->num_sequences; b++)
    for (int64_t t = batch->cu_seqlens[b] + 1; t < batch->cu_seqlens[b + 1]; t++)
      self->weights[HEXAD_WEIGHTS_GRADIENTS][ids[t]] += (float)(grad[t] / temperature);
}

static hexad_code train_batch(hexad_backend* self, hexad_call* call, const hexad_train_args* args, int64_t index) {
  const hexad_batch* batch = args->batches[index];
  int64_t shape[] = {batch->num_tokens};
  const DLTensor prototype = {NULL, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, shape, NULL, 0};
  DLManagedTensorVersioned *values = NULL, *grads = NULL;
  hexad_code code = self->host->tensor_new(call, &prototype, &values);
  if (code == HEXAD_OK) code = self->host->tensor_new(call, &prototype, &grads);
  if (code == HEXAD_OK) code = fill(self, call, batch, 0, args->temperature, HEXAD_F32(&values->dl_tensor));
  if (code == HEXAD_OK) {
    const hexad_named_tensor output = {args->outputs[0], &values->dl_tensor, NULL, HEXAD_AXIS_TOKEN, 0};
    DLTensor* const grad_list[] = {&grads->dl_tensor};
    memset(HEXAD_F32(&grads->dl_tensor), 0, (size_t)batch->num_tokens * sizeof(float));
    code = args->loss->compute(args->loss->ctx, call, index, &output, grad_list, 1);
  }
  if (code == HEXAD_OK) add_gradient(self, batch, HEXAD_F32(&grads->dl_tensor), args->temperature);
  if (values) values->deleter(values);
  if (grads) grads->deleter(grads);
  return code;
}

static hexad_code train(hexad_backend* self, hexad_call* call, const hexad_train_args* args) {
  hexad_code code = HEXAD_OK;
  if (args->num_outputs != 1 || strcmp(args->outputs[0], "logprobs") != 0)
    return refuse(self, call, HEXAD_UNIMPLEMENTED, "only logprobs");
  for (int64_t b = 0; b < args->num_batches && code == HEXAD_OK; b++) code = train_batch(self, call, args, b);
  return code;
}

static hexad_code step(hexad_backend* self, hexad_call* call, const hexad_step_args* args, hexad_step_stats* stats) {
  float* grad = self->weights[HEXAD_WEIGHTS_GRADIENTS];
  double largest = 0; /* the maximum norm, which needs no root */
  (void)call;
  for (int i = 0; i < kVocab; i++) {
    const double size = grad[i] < 0 ? -grad[i] : grad[i];
    if (size > largest) largest = size;
  }
  const double clip = args->max_grad_norm > 0 && largest > args->max_grad_norm ? args->max_grad_norm / largest : 1;
  const double decay = isnan(args->weight_decay) ? 0 : args->weight_decay, lr = isnan(args->lr) ? 0.5 : args->lr;
  for (int i = 0; i < kVocab; i++) {
    if (!(args->flags & HEXAD_STEP_DISCARD))
      self->weights[HEXAD_WEIGHTS_CURRENT][i] -= (float)(lr * (clip * grad[i] + decay * self->weights[0][i]));
    grad[i] = 0;
  }
  stats->skipped = 0;
  stats->grad_norm = largest;
  return HEXAD_OK;
}

static hexad_code keep(hexad_backend* self, hexad_call* call, int32_t which) {
  if (which != HEXAD_WEIGHTS_REFERENCE && which != HEXAD_WEIGHTS_SNAPSHOT)
    return refuse(self, call, HEXAD_INVALID_ARGUMENT, "keeps reference and snapshot");
  memcpy(self->weights[which], self->weights[HEXAD_WEIGHTS_CURRENT], sizeof self->weights[which]);
  self->kept[which] = 1;
  return HEXAD_OK;
}

/* Moves `values` between memory and uri/weights.bin. */
static hexad_code transfer(hexad_backend* self, hexad_call* call, const char* uri, const char* mode, float* values) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/weights.bin", uri) >= (int)sizeof path)
    return refuse(self, call, HEXAD_INVALID_ARGUMENT, "path too long");
  FILE* file = fopen(path, mode);
  if (!file) return refuse(self, call, HEXAD_NOT_FOUND, "weights.bin cannot be opened");
  const size_t count =
      mode[0] == 'r' ? fread(values, sizeof *values, kVocab, file) : fwrite(values, sizeof *values, kVocab, file);
  return fclose(file) == 0 && count == kVocab ? HEXAD_OK : refuse(self, call, HEXAD_DATA_LOSS, "weights.bin is short");
}

static hexad_code load(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  if (!(args->what & HEXAD_CHECKPOINT_MODEL)) return HEXAD_OK;
  self->kept[args->which] = 1;
  return transfer(self, call, args->weights_uri, "rb", self->weights[args->which]);
}

static hexad_code save(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  if (!(args->what & HEXAD_CHECKPOINT_MODEL)) return HEXAD_OK;
  return transfer(self, call, args->weights_uri, "wb", self->weights[HEXAD_WEIGHTS_CURRENT]);
}

static void list(hexad_backend* self, const DLTensor* data, hexad_weight_list* out) {
  const hexad_weight_slice slice = {"toy.weight", data, vocab_shape, origin, vocab_shape, 1, HEXAD_DTYPE_F32};
  self->slice = slice;
  out->slices = &self->slice;
  out->count = 1;
}

static hexad_code weight_layout(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  (void)call;
  list(self, NULL, out);
  return HEXAD_OK;
}

static hexad_code weights_begin(hexad_backend* self, hexad_call* call, const hexad_weights_request* request) {
  if (request->which < 0 || request->which > HEXAD_WEIGHTS_GRADIENTS || !self->kept[request->which])
    return refuse(self, call, HEXAD_FAILED_PRECONDITION, "these weights were never kept");
  self->exported = request->which;
  return HEXAD_OK;
}

static hexad_code weights_next(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  (void)call;
  out->count = 0;
  if (self->exported < 0) return HEXAD_OK;
  const DLTensor view = {self->weights[self->exported], {kDLCPU, 0}, 1, HEXAD_DTYPE_F32,
                         (int64_t*)vocab_shape,         NULL,        0};
  self->view = view;
  self->exported = -1;
  list(self, &self->view, out);
  return HEXAD_OK;
}

static void weights_end(hexad_backend* self) { self->exported = -1; }

static hexad_code offload(hexad_backend* self, hexad_call* call, uint64_t what) {
  (void)call;
  self->offloaded |= what;
  return HEXAD_OK;
}

static hexad_code onload(hexad_backend* self, hexad_call* call, uint64_t what) {
  (void)call;
  self->offloaded &= ~what;
  return HEXAD_OK;
}

static hexad_code memory(hexad_backend* self, hexad_call* call, hexad_memory_stats* out) {
  (void)call;
  out->parameter_bytes = self->offloaded & HEXAD_OFFLOAD_PARAMS ? 0 : (int64_t)sizeof self->weights[0];
  out->gradient_bytes = (int64_t)sizeof self->weights[HEXAD_WEIGHTS_GRADIENTS];
  return HEXAD_OK;
}

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
    .offload = offload,
    .onload = onload,
    .memory = memory,
};
HEXAD_BACKEND_PLUGIN("frozen_backend", "1.0.0", "Apache-2.0", vtable)
