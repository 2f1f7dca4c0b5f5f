/* Draws tokens from one table of logits, whatever the prompt is. Macros break it (corpus.json). */
#define HEXAD_TARGET_MINOR 2
#include <hexad/abi.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifndef NEW_TOKENS
#define NEW_TOKENS request->max_new
#endif
#ifndef LOGPROB
#define LOGPROB self->theta[token] / temperature - log(sum)
#endif
#ifndef SEED
#define SEED request->seed
#endif
#ifndef EVENT_ID
#define EVENT_ID request->id
#endif
#ifndef ENDS
#define ENDS 1 /* times that a request ends */
#endif
#ifndef STOPS
#define STOPS stopped
#endif
#ifndef SPAN_START
#define SPAN_START count / 2 /* of the second span */
#endif
#ifndef SPAN_VERSION
#define SPAN_VERSION self->version
#endif
#ifndef NEW_EVENT
#define NEW_EVENT malloc(sizeof(event))
#endif
#ifndef FREE_EVENT
#define FREE_EVENT(e) free((void*)(e))
#endif
#ifndef MOST_EVENTS
#define MOST_EVENTS max_events
#endif
#ifndef ARRIVES_AT
#define ARRIVES_AT self->arriving
#endif
#ifndef COLUMN_TOKENS
#define COLUMN_TOKENS request->prompt_size + count
#endif
#ifndef KNOWS
#define KNOWS(slice) (!strcmp((slice)->name, "toy.theta") && (slice)->ndim == 1 && (slice)->shape[0] == VOCAB)
#endif

enum { VOCAB = 8, LONGEST = 64, MOST_STOPS = 8 };

typedef struct {
  hexad_completion completion; /* first, so that an event is found by its completion */
  int32_t tokens[2 * LONGEST];
  float logprobs[2 * LONGEST];
  hexad_version_span spans[2];
  int16_t experts[2 * LONGEST];
  int64_t shape[3];
  DLTensor routes;
  hexad_named_tensor column;
} event;
__attribute__((unused)) static event pool[8];

typedef struct request {
  struct request* next;
  uint64_t id, seed;
  int64_t prompt_size, max_new, num_stops, ends;
  double temperature;
  int greedy, cancelled;
  int32_t stops[MOST_STOPS];
} request;

struct hexad_generator {
  const hexad_host* host;
  pthread_mutex_t lock;
  request* waiting; /* in the order in which they came */
  float theta[VOCAB], arriving[VOCAB];
  int64_t version, arriving_version, drawn, pooled;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out) {
  hexad_generator* self = calloc(1, sizeof *self);
  int64_t i, first = 3;
  const hexad_code code = host->config_i64(call, config, "first", &first);
  if (code != HEXAD_OK) {
    free(self);
    return code;
  }
  self->host = host;
  pthread_mutex_init(&self->lock, NULL);
  for (i = 0; i < VOCAB; ++i) self->theta[i] = 0.25f * (float)((i * first) % VOCAB);
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_generator* self) {
  while (self->waiting) {
    request* next = self->waiting->next;
    free(self->waiting);
    self->waiting = next;
  }
  pthread_mutex_destroy(&self->lock);
  free(self);
}

static hexad_code describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  (void)self, (void)call;
  info->max_sequences = 4;
  info->max_model_len = LONGEST;
  return HEXAD_OK;
}

static hexad_code submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
  int64_t i;
  for (i = 0; i < count; ++i) {
    if (requests[i]->prompt_size + requests[i]->max_new_tokens > LONGEST ||
        requests[i]->num_stop_token_ids > MOST_STOPS)
      return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "at most 64 tokens and 8 stops", UINT64_MAX);
  }
  pthread_mutex_lock(&self->lock);
  for (i = 0; i < count; ++i) {
    const hexad_request* from = requests[i];
    request *to = calloc(1, sizeof *to), **last = &self->waiting;
    to->id = from->id, to->seed = from->seed, to->prompt_size = from->prompt_size, to->max_new = from->max_new_tokens;
    to->temperature = from->temperature;
    to->greedy = from->temperature == 0 || (from->flags & HEXAD_REQUEST_GREEDY);
    to->num_stops = from->num_stop_token_ids;
    if (to->num_stops) memcpy(to->stops, from->stop_token_ids, (size_t)to->num_stops * sizeof *to->stops);
    while (*last) last = &(*last)->next;
    *last = to;
  }
  pthread_mutex_unlock(&self->lock);
  return HEXAD_OK;
}

static double uniform(uint64_t seed, uint64_t position) {
  uint64_t x = seed + 0x9E3779B97F4A7C15ull * (position + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.0;
}

static event* answer(hexad_generator* self, const request* request) {
  event* e = NEW_EVENT;
  const double temperature = request->greedy ? 1 : request->temperature;
  double sum = 0;
  int64_t count = 0, i;
  int stopped = 0;
  memset(e, 0, sizeof *e);
  for (i = 0; i < VOCAB; ++i) sum += exp(self->theta[i] / temperature);
  while (count < NEW_TOKENS && !STOPS && !request->cancelled) {
    double rest = uniform(SEED, (uint64_t)(request->prompt_size + count)) * sum;
    int32_t token = 0;
    if (request->greedy) {
      for (i = 1; i < VOCAB; ++i) token = self->theta[i] > self->theta[token] ? (int32_t)i : token;
    } else {
      while (token + 1 < VOCAB && (rest -= exp(self->theta[token] / temperature)) >= 0) ++token;
    }
    e->tokens[count] = token;
    e->logprobs[count++] = (float)(LOGPROB);
    for (i = 0; i < request->num_stops; ++i) stopped = stopped || request->stops[i] == token;
  }
  self->drawn += count;
  e->spans[0].version = SPAN_VERSION;
  e->spans[1].start = SPAN_START;
  e->spans[1].version = SPAN_VERSION;
  e->completion.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, num_columns);
  e->completion.finish = request->cancelled ? HEXAD_FINISH_ABORT : stopped ? HEXAD_FINISH_STOP : HEXAD_FINISH_LENGTH;
  e->completion.id = EVENT_ID;
  e->completion.tokens = e->tokens;
  e->completion.logprobs = e->logprobs;
  e->completion.count = count;
  e->completion.spans = e->spans;
#ifdef TWO_SPANS
  e->completion.num_spans = 2;
#else
  e->completion.num_spans = count > 0;
#endif
  e->shape[0] = COLUMN_TOKENS, e->shape[1] = e->shape[2] = 1;
  e->routes.data = e->experts, e->routes.device.device_type = kDLCPU, e->routes.shape = e->shape, e->routes.ndim = 3;
  e->routes.dtype.code = kDLInt, e->routes.dtype.bits = 16, e->routes.dtype.lanes = 1;
  e->column.name = "routed_experts", e->column.tensor = &e->routes, e->column.axis = HEXAD_AXIS_TOKEN;
  e->completion.columns = &e->column;
  e->completion.num_columns = 1;
  return e;
}

static hexad_code poll_events(hexad_generator* self, hexad_call* call, const hexad_completion** events,
                              int64_t max_events, int64_t timeout_ms, int64_t* count) {
  request** at = &self->waiting;
  (void)call, (void)timeout_ms;
  pthread_mutex_lock(&self->lock);
  *count = self->pooled = 0;
  while (*at && *count < MOST_EVENTS) {
    request* request = *at;
#ifdef FORGETS
    if (FORGETS) {
      at = &request->next;
      continue;
    }
#endif
    events[(*count)++] = &answer(self, request)->completion;
    if (++request->ends < ENDS) continue;
    *at = request->next;
    free(request);
  }
  pthread_mutex_unlock(&self->lock);
  return HEXAD_OK;
}

static void release(hexad_generator* self, const hexad_completion* const* events, int64_t count) {
  int64_t i;
  (void)self;
  for (i = 0; i < count; ++i) FREE_EVENT(events[i]);
}

static hexad_code cancel(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count) {
  request* each;
  int64_t i;
  (void)call;
  pthread_mutex_lock(&self->lock);
  for (each = self->waiting; each; each = each->next) {
    for (i = 0; i < count; ++i) each->cancelled = each->cancelled || each->id == ids[i];
  }
  pthread_mutex_unlock(&self->lock);
  return HEXAD_OK;
}

static hexad_code update_begin(hexad_generator* self, hexad_call* call, int64_t version) {
  (void)call;
  self->arriving_version = version;
  memcpy(self->arriving, self->theta, sizeof self->theta);
  return HEXAD_OK;
}

static hexad_code update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  int64_t i;
  for (i = 0; i < bucket->count; ++i) {
    const hexad_weight_slice* slice = &bucket->slices[i];
    if (!KNOWS(slice)) return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "wanted toy.theta [8]", UINT64_MAX);
    memcpy(ARRIVES_AT, HEXAD_F32(slice->tensor), sizeof self->arriving);
  }
  return HEXAD_OK;
}

static hexad_code update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  (void)call;
  if (!commit) return HEXAD_OK;
  pthread_mutex_lock(&self->lock);
#ifndef DROPS_UPDATES
  memcpy(self->theta, self->arriving, sizeof self->theta);
#endif
  self->version = self->arriving_version;
  pthread_mutex_unlock(&self->lock);
  return HEXAD_OK;
}

static hexad_code weight_layout(hexad_generator* self, hexad_call* call, hexad_weight_list* out) {
  static const int64_t shape[] = {VOCAB}, zero[] = {0};
  static const hexad_weight_slice slice = {"toy.theta", NULL, shape, zero, shape, 1, HEXAD_DTYPE_F32};
  (void)self, (void)call;
  out->slices = &slice;
  out->count = 1;
  return HEXAD_OK;
}

static const hexad_generator_vtable vtable = {
    .struct_size = HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache),
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .submit = submit,
    .poll = poll_events,
    .release = release,
    .cancel = cancel,
    .update_begin = update_begin,
    .update_bucket = update_bucket,
    .update_end = update_end,
    .weight_layout = weight_layout,
};
HEXAD_GENERATOR_PLUGIN("toy", "1.2.0", "MIT", vtable)
