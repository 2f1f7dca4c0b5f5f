/* A training backend without a library: the toy model, SGD. As a reward model it scores a sequence by A of every
 * token after the one before it, summed. */
#include "toy_model.h"

struct hexad_backend {
  const hexad_host* host;
  toy_fault fault;
  int64_t reward_head; /* plugin_config.reward_head: 1 makes it a reward model */
  char trace[4096];    /* plugin_config.trace: a file that gets a line for each micro-batch and each step */
  float current[WEIGHTS], reference[WEIGHTS];
  double grad[WEIGHTS];
  int exported;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_backend** out) {
  hexad_backend* self = calloc(1, sizeof *self);
  self->host = host;
  hexad_code code = toy_read_fault(host, call, config, &self->fault);
  if (code == HEXAD_OK) code = toy_read_trace(host, call, config, self->trace);
  if (code == HEXAD_OK) code = host->config_i64(call, config, "reward_head", &self->reward_head);
  if (code == HEXAD_OK) code = toy_act(&self->fault, host, call, "create");
  if (code == HEXAD_OK) {
    *out = self;
  } else {
    free(self);
  }
  return code;
}
static void destroy(hexad_backend* self) { free(self); }

static hexad_code describe(hexad_backend* self, hexad_call* call, hexad_backend_info* info) {
  static const char* const outputs[] = {"logprobs", "sequence_scores"};
  static const char* const inputs[] = {"input_ids"};
  (void)call;
  info->num_parameters = WEIGHTS;
  info->dp_rank = 0;
  info->dp_size = info->tp_size = info->pp_size = info->cp_size = info->ep_size = 1;
  info->sequence_multiple = info->micro_batch_multiple = info->counts_loss = 1;
  info->outputs = outputs;
  info->inputs = inputs;
  info->num_outputs = self->reward_head ? 2 : 1;
  info->num_inputs = 1;
  return HEXAD_OK;
}

static void note(const hexad_backend* self, const char* what, const hexad_batch* batch) {
  FILE* file = *self->trace ? fopen(self->trace, "a") : NULL;
  if (!file) return;
  fprintf(file, "%s: %lld sequences, %lld tokens, padded to %lld\n", what, (long long)batch->num_sequences,
          (long long)batch->num_tokens, (long long)batch->padded_length);
  fclose(file);
}

/* The log-prob of `id` among the k likeliest tokens: -inf outside of them. */
static double toy_top_k(const double* all, int64_t id, int64_t k) {
  double kept = 0;
  for (int v = 0; v < V; v++) {
    int64_t above = 0;
    for (int other = 0; other < V; other++) above += all[other] > all[v];
    if (above < k) kept += exp(all[v]);
    if (v == id && above >= k) return -INFINITY;
  }
  return all[id] - log(kept);
}

static void batch_logprobs(const float* weights, const hexad_batch* batch, double temperature, int64_t top_k,
                           float* out) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  double all[V];
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    const int64_t begin = batch->cu_seqlens[b], end = batch->cu_seqlens[b + 1];
    for (int64_t i = begin; i < end; i++) {
      toy_logprobs(weights, ids + begin, i - begin, temperature, all);
      out[i] = i == begin ? 0 : (float)(top_k > 0 ? toy_top_k(all, ids[i], top_k) : all[ids[i]]);
    }
  }
}

static int wants_scores(const char* output) { return strcmp(output, "sequence_scores") == 0; }

static void batch_scores(const float* weights, const hexad_batch* batch, float* out) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    out[b] = 0;
    for (int64_t i = batch->cu_seqlens[b] + 1; i < batch->cu_seqlens[b + 1]; i++)
      out[b] += weights[ids[i - 1] * V + ids[i]];
  }
}

static void accumulate_scores(hexad_backend* self, const hexad_batch* batch, const float* grad) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    for (int64_t i = batch->cu_seqlens[b] + 1; i < batch->cu_seqlens[b + 1]; i++)
      self->grad[ids[i - 1] * V + ids[i]] += grad[b];
  }
}

static hexad_code forward(hexad_backend* self, hexad_call* call, const hexad_forward_args* args) {
  const hexad_code code = toy_act(&self->fault, self->host, call, "forward");
  if (code != HEXAD_OK) return code;
  const float* weights = args->which == HEXAD_WEIGHTS_CURRENT ? self->current : self->reference;
  for (int64_t m = 0; m < args->num_batches; m++) {
    note(self, "forward", args->batches[m]);
    float* out = HEXAD_F32(args->outputs[m][0].tensor);
    if (wants_scores(args->outputs[m][0].name)) {
      batch_scores(weights, args->batches[m], out);
    } else {
      batch_logprobs(weights, args->batches[m], args->temperature, args->top_k, out);
    }
  }
  return HEXAD_OK;
}

/* d logprob(id) / d logit(v) = (v == id) - p(v). */
static void accumulate(hexad_backend* self, const hexad_batch* batch, double temperature, const float* grad) {
  const int64_t* ids = HEXAD_I64(batch->tensors[0].tensor);
  double all[V];
  for (int64_t b = 0; b < batch->num_sequences; b++) {
    const int64_t begin = batch->cu_seqlens[b];
    for (int64_t i = begin + 1; i < batch->cu_seqlens[b + 1]; i++) {
      toy_logprobs(self->current, ids + begin, i - begin, temperature, all);
      for (int v = 0; v < V; v++) {
        const double g = grad[i] * ((v == ids[i]) - exp(all[v])) / temperature;
        self->grad[ids[i - 1] * V + v] += g;
        if (i - begin >= 2) self->grad[V * V + ids[i - 2] * V + v] += g;
      }
    }
  }
}

static hexad_code train(hexad_backend* self, hexad_call* call, const hexad_train_args* args) {
  hexad_code code = toy_act(&self->fault, self->host, call, "train");
  for (int64_t m = 0; m < args->num_batches && code == HEXAD_OK; m++) {
    const hexad_batch* batch = args->batches[m];
    note(self, "train", batch);
    const int scores = wants_scores(args->outputs[0]);
    int64_t size = scores ? batch->num_sequences : batch->num_tokens;
    float* values = calloc((size_t)size + 1, sizeof *values);
    float* grads = calloc((size_t)size + 1, sizeof *grads);
    DLTensor value = {values, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, &size, NULL, 0}, grad = value;
    grad.data = grads;
    DLTensor* grad_list[] = {&grad};
    const hexad_named_tensor output = {args->outputs[0], &value, NULL, scores ? HEXAD_AXIS_SAMPLE : HEXAD_AXIS_TOKEN,
                                       0};
    if (scores) {
      batch_scores(self->current, batch, values);
    } else {
      batch_logprobs(self->current, batch, args->temperature, 0, values);
    }
    code = args->loss->compute(args->loss->ctx, call, m, &output, grad_list, 1);
    if (code == HEXAD_OK && scores) accumulate_scores(self, batch, grads);
    if (code == HEXAD_OK && !scores) accumulate(self, batch, args->temperature, grads);
    free(values);
    free(grads);
  }
  if (toy_fails(&self->fault, self->host, call, "train") && strcmp(self->fault.how, "nan") == 0) self->grad[0] = NAN;
  return code;
}

static void note_step(const hexad_backend* self, const hexad_step_args* args) {
  FILE* file = *self->trace ? fopen(self->trace, "a") : NULL;
  if (!file) return;
  fprintf(file, "step: rate %g, largest norm %g, flags %u\n", args->lr, args->max_grad_norm, args->flags);
  fclose(file);
}

static hexad_code step(hexad_backend* self, hexad_call* call, const hexad_step_args* args, hexad_step_stats* stats) {
  double sum = 0;
  note_step(self, args);
  (void)call;
  for (int i = 0; i < WEIGHTS; i++) sum += self->grad[i] * self->grad[i];
  const int discard = (args->flags & HEXAD_STEP_DISCARD) != 0;
  stats->grad_norm = sqrt(sum);
  stats->skipped = !discard && !isfinite(sum);
  const int clips = args->max_grad_norm > 0 && stats->grad_norm > args->max_grad_norm;
  const double rate = args->lr * (clips ? args->max_grad_norm / stats->grad_norm : 1);
  if (!discard && !stats->skipped) {
    for (int i = 0; i < WEIGHTS; i++) self->current[i] -= (float)(rate * self->grad[i]);
  }
  memset(self->grad, 0, sizeof self->grad);
  return HEXAD_OK;
}

static hexad_code keep(hexad_backend* self, hexad_call* call, int32_t which) {
  (void)call, (void)which;
  memcpy(self->reference, self->current, sizeof self->reference);
  return HEXAD_OK;
}

static hexad_code save(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  char path[4096];
  snprintf(path, sizeof path, "%s/toy.bin", args->weights_uri);
  FILE* file = fopen(path, "wb");
  if (!file) return self->host->set_error(call, HEXAD_UNAVAILABLE, "cannot write toy.bin", UINT64_MAX);
  fwrite(self->current, sizeof(float), WEIGHTS / 2, file);
  fflush(file);
  const hexad_code code = toy_act(&self->fault, self->host, call, "save"); /* in the middle of the file */
  fwrite(self->current + WEIGHTS / 2, sizeof(float), WEIGHTS / 2, file);
  fclose(file);
  if (code != HEXAD_OK || !(args->what & HEXAD_CHECKPOINT_OPTIMIZER)) return code;
  snprintf(path, sizeof path, "%s/toy.bin", args->optimizer_uri);
  file = fopen(path, "wb"); /* SGD has no state: a file that is there */
  if (!file) return self->host->set_error(call, HEXAD_UNAVAILABLE, "cannot write the optimizer", UINT64_MAX);
  fclose(file);
  return HEXAD_OK;
}

static hexad_code load(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args) {
  char path[4096];
  snprintf(path, sizeof path, "%s/toy.bin", args->weights_uri);
  FILE* file = fopen(path, "rb");
  if (!file) return self->host->set_error(call, HEXAD_NOT_FOUND, "no toy.bin", UINT64_MAX);
  const size_t count =
      fread(args->which == HEXAD_WEIGHTS_CURRENT ? self->current : self->reference, sizeof(float), WEIGHTS, file);
  fclose(file);
  return count == WEIGHTS ? HEXAD_OK : self->host->set_error(call, HEXAD_DATA_LOSS, "toy.bin is too short", UINT64_MAX);
}

static int64_t shape[] = {WEIGHTS}, offsets[] = {0};
static DLTensor exported = {NULL, {kDLCPU, 0}, 1, HEXAD_DTYPE_F32, shape, NULL, 0};
static const hexad_weight_slice slice = {"toy", &exported, shape, offsets, shape, 1, HEXAD_DTYPE_F32};

static hexad_code weight_layout(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  (void)self, (void)call;
  out->slices = &slice;
  out->count = 1;
  return HEXAD_OK;
}
static hexad_code weights_begin(hexad_backend* self, hexad_call* call, const hexad_weights_request* request) {
  (void)request;
  self->exported = 0;
  exported.data = self->current;
  return toy_act(&self->fault, self->host, call, "refit");
}
static hexad_code weights_next(hexad_backend* self, hexad_call* call, hexad_weight_list* out) {
  (void)call;
  out->slices = &slice;
  out->count = self->exported++ == 0;
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
HEXAD_BACKEND_PLUGIN("toy_backend", "1.2.0", "Apache-2.0", vtable)
