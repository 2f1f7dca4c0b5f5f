/* Frozen with v1.2-rc1: a generator that repeats its prompt, shifted by the seed. Its log-probs are the weights it was
 * given last. A request waits until it is polled, so that it can be cancelled. Each completion has a column. */
#define HEXAD_TARGET_MINOR 2
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>

enum { kVocab = 4, kMaxRequests = 8, kMaxTokens = 16 };

typedef struct event {
  hexad_completion completion;
  hexad_version_span span;
  int32_t tokens[kMaxTokens];
  float logprobs[kMaxTokens];
  hexad_named_tensor column;
  DLTensor routes;
  int64_t shape[3];
  int16_t experts[2 * kMaxTokens][2];
} event;

struct hexad_generator {
  const hexad_host* host;
  event* waiting[kMaxRequests];
  int64_t num_waiting;
  float weights[kVocab], arriving[kVocab];
  int32_t arrived;
  int64_t version, arriving_version, max_length;
  int64_t pauses; /* calls of the optional functions, one decimal digit each */
};

static hexad_code refuse(hexad_generator* self, hexad_call* call, hexad_code code, const char* text) {
  return self->host->set_error(call, code, text, UINT64_MAX);
}

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out) {
  int64_t vocab = 0, max_length = 0;
  hexad_code code;
  if ((code = host->config_i64(call, config, "vocab_size", &vocab)) != HEXAD_OK ||
      (code = host->config_i64(call, config, "max_total_sequence_length", &max_length)) != HEXAD_OK)
    return code;
  if (vocab != kVocab) return host->set_error(call, HEXAD_INVALID_ARGUMENT, "wanted vocab_size 4", UINT64_MAX);
  hexad_generator* self = calloc(1, sizeof *self);
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->host = host;
  self->max_length = max_length;
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_generator* self) {
  for (int64_t i = 0; i < self->num_waiting; i++) free(self->waiting[i]);
  free(self);
}

static hexad_code describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  (void)call;
  info->caps = HEXAD_GEN_SLEEP | HEXAD_GEN_ROUTED_EXPERTS;
  info->max_sequences = kMaxRequests;
  info->max_model_len = self->max_length;
  info->kv_capacity = 0;
  info->weight_form = HEXAD_FORM_FULL;
  return HEXAD_OK;
}

static void add_column(event* made, int64_t tokens) {
  const DLDataType i16 = {kDLInt, 16, 1};
  for (int64_t t = 0; t < tokens; t++)
    for (int64_t k = 0; k < 2; k++) made->experts[t][k] = (int16_t)(t + 1 < tokens ? (t + k) % 3 : -1);
  made->shape[0] = tokens, made->shape[1] = 1, made->shape[2] = 2;
  made->routes.data = made->experts;
  made->routes.device.device_type = kDLCPU;
  made->routes.ndim = 3;
  made->routes.dtype = i16;
  made->routes.shape = made->shape;
  made->column.name = "routed_experts";
  made->column.tensor = &made->routes;
  made->column.axis = HEXAD_AXIS_TOKEN;
  made->completion.columns = &made->column;
  made->completion.num_columns = 1;
}

static event* answer(const hexad_generator* self, const hexad_request* request) {
  event* made = calloc(1, sizeof *made);
  if (!made) return NULL;
  hexad_completion* completion = &made->completion;
  completion->struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
  completion->finish = HEXAD_FINISH_LENGTH;
  completion->id = request->id;
  completion->tokens = made->tokens;
  completion->logprobs = made->logprobs;
  completion->spans = &made->span;
  completion->num_spans = 1;
  made->span.version = self->version;
  while (completion->count < request->max_new_tokens && completion->count < kMaxTokens) {
    const int64_t i = completion->count++;
    const uint64_t source = (uint64_t)request->prompt[i % request->prompt_size];
    made->tokens[i] = (int32_t)((source + request->seed + request->group) % kVocab);
    made->logprobs[i] = self->weights[made->tokens[i]] - 1;
    for (int64_t s = 0; s < request->num_stop_token_ids; s++)
      if (request->stop_token_ids[s] == made->tokens[i]) completion->finish = HEXAD_FINISH_STOP;
    if (completion->finish == HEXAD_FINISH_STOP) break;
  }
  add_column(made, request->prompt_size + completion->count);
  return made;
}

static hexad_code submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
  if (self->num_waiting + count > kMaxRequests) return refuse(self, call, HEXAD_RESOURCE_EXHAUSTED, "8 at most");
  for (int64_t i = 0; i < count; i++) {
    event* made = answer(self, requests[i]);
    if (!made) return refuse(self, call, HEXAD_RESOURCE_EXHAUSTED, "out of memory");
    self->waiting[self->num_waiting++] = made;
  }
  return self->host->metric(call, "waiting", (double)self->num_waiting, 1, HEXAD_REDUCE_MAX);
}

static hexad_code poll(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                       int64_t timeout_ms, int64_t* count) {
  const int64_t given = self->num_waiting < max_events ? self->num_waiting : max_events;
  (void)call, (void)timeout_ms;
  for (int64_t i = 0; i < given; i++) events[i] = &self->waiting[i]->completion;
  memmove(self->waiting, self->waiting + given, (size_t)(self->num_waiting - given) * sizeof *self->waiting);
  self->num_waiting -= given;
  *count = given;
  return HEXAD_OK;
}

static void release(hexad_generator* self, const hexad_completion* const* events, int64_t count) {
  (void)self;
  for (int64_t i = 0; i < count; i++) free((event*)events[i]); /* its first member */
}

static hexad_code cancel(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count) {
  (void)call;
  for (int64_t i = 0; i < count; i++)
    for (int64_t w = 0; w < self->num_waiting; w++)
      if (self->waiting[w]->completion.id == ids[i]) self->waiting[w]->completion.finish = HEXAD_FINISH_ABORT;
  return HEXAD_OK;
}

static hexad_code update_begin(hexad_generator* self, hexad_call* call, int64_t version) {
  (void)call;
  self->arrived = 0;
  self->arriving_version = version;
  return HEXAD_OK;
}

static hexad_code update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  for (int64_t i = 0; i < bucket->count; i++) {
    const hexad_weight_slice* slice = &bucket->slices[i];
    if (slice->ndim != 1 || slice->shape[0] != kVocab || slice->dtype.code != kDLFloat || slice->dtype.bits != 32)
      return refuse(self, call, HEXAD_INVALID_ARGUMENT, "wanted f32 [4]");
    memcpy(self->arriving, HEXAD_F32(slice->tensor), sizeof self->arriving);
    self->arrived = 1;
  }
  return HEXAD_OK;
}

static hexad_code update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  if (!commit) return HEXAD_OK;
  if (!self->arrived) return refuse(self, call, HEXAD_FAILED_PRECONDITION, "no weights arrived");
  memcpy(self->weights, self->arriving, sizeof self->weights);
  self->version = self->arriving_version;
  return HEXAD_OK;
}

static hexad_code counted(hexad_generator* self, hexad_call* call, int64_t digit) {
  self->pauses += digit;
  return self->host->metric(call, "pauses", (double)self->pauses, 1, HEXAD_REDUCE_LAST);
}
static hexad_code pause(hexad_generator* self, hexad_call* call) { return counted(self, call, 1); }
static hexad_code resume(hexad_generator* self, hexad_call* call) { return counted(self, call, 10); }
static hexad_code sleep(hexad_generator* self, hexad_call* call, int32_t level) {
  return counted(self, call, 100 * level);
}
static hexad_code wake(hexad_generator* self, hexad_call* call) { return counted(self, call, 1000); }
static hexad_code flush_cache(hexad_generator* self, hexad_call* call) { return counted(self, call, 10000); }

static const hexad_generator_vtable vtable = {
    .struct_size = HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache),
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .submit = submit,
    .poll = poll,
    .release = release,
    .cancel = cancel,
    .update_begin = update_begin,
    .update_bucket = update_bucket,
    .update_end = update_end,
    .pause = pause,
    .resume = resume,
    .sleep = sleep,
    .wake = wake,
    .flush_cache = flush_cache,
};
HEXAD_GENERATOR_PLUGIN("frozen_generator", "1.2.0", "Apache-2.0", vtable)
