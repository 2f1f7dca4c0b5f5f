/* A generator without a library: samples the toy model, keyed by (seed, position). */
#include <pthread.h>

#include "toy_model.h"

typedef struct pending {
  hexad_completion completion;
  hexad_version_span span;
  struct pending* next;
  int32_t tokens[64];
  float logprobs[64];
} pending;

struct hexad_generator {
  const hexad_host* host;
  toy_fault fault;
  char trace[4096]; /* plugin_config.trace: a file that gets a line for each request */
  int64_t poll_ms;  /* > 0: how long a poll takes, which hands out one completion */
  double bias;      /* plugin_config.bias: added to every log-prob that is told */
  int64_t version;
  float weights[WEIGHTS];
  pthread_mutex_t mutex; /* of the list: submit comes while another thread polls */
  pending *first, *last;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out) {
  hexad_generator* self = calloc(1, sizeof *self);
  self->host = host;
  hexad_code code = toy_read_fault(host, call, config, &self->fault);
  if (code == HEXAD_OK) code = toy_read_trace(host, call, config, self->trace);
  if (code == HEXAD_OK) code = host->config_i64(call, config, "poll_ms", &self->poll_ms);
  if (code == HEXAD_OK) code = host->config_f64(call, config, "bias", &self->bias);
  if (code == HEXAD_OK) {
    pthread_mutex_init(&self->mutex, NULL);
    *out = self;
  } else {
    free(self);
  }
  return code;
}
static void destroy(hexad_generator* self) {
  pthread_mutex_destroy(&self->mutex);
  free(self);
}

static hexad_code describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  (void)self, (void)call;
  info->max_sequences = 64;
  info->max_model_len = 64;
  return HEXAD_OK;
}

static double uniform(uint64_t seed, uint64_t position) { /* splitmix64 */
  uint64_t z = seed + (position + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static int stops(const hexad_request* request, int32_t token) {
  for (int64_t i = 0; i < request->num_stop_token_ids; i++) {
    if (request->stop_token_ids[i] == token && !(request->flags & HEXAD_REQUEST_IGNORE_EOS)) return 1;
  }
  return 0;
}

static void sample(const hexad_generator* self, const hexad_request* request, pending* out) {
  int64_t ids[128], n = request->prompt_size;
  double all[V];
  for (int64_t i = 0; i < n; i++) ids[i] = request->prompt[i];
  out->completion.finish = HEXAD_FINISH_LENGTH;
  int64_t count = 0;
  while (count < request->max_new_tokens && count < 64 && n < 128) {
    toy_logprobs(self->weights, ids, n, request->temperature, all);
    double left = uniform(request->seed, (uint64_t)n);
    int32_t token = 0;
    while (token < V - 1 && (left -= exp(all[token])) > 0) token++;
    if (request->flags & HEXAD_REQUEST_GREEDY) {
      token = 0;
      for (int32_t v = 1; v < V; v++) token = all[v] > all[token] ? v : token;
    }
    out->tokens[count] = token;
    out->logprobs[count++] = (float)(all[token] + self->bias);
    ids[n++] = token;
    if (!stops(request, token)) continue;
    out->completion.finish = HEXAD_FINISH_STOP;
    break;
  }
  out->completion.count = count;
}

/* What no generator may say: fault = "spoil@STEP:HOW". */
static void spoil(const toy_fault* fault, int64_t max_new_tokens, pending* entry) {
  hexad_completion* completion = &entry->completion;
  if (strcmp(fault->how, "id") == 0) completion->id += 100000;
  if (strcmp(fault->how, "twice") == 0) completion->id = 0;
  if (strcmp(fault->how, "token") == 0) entry->tokens[0] = 4000;
  if (strcmp(fault->how, "negative") == 0) entry->tokens[0] = -1;
  if (strcmp(fault->how, "nan") == 0) entry->logprobs[0] = NAN;
  if (strcmp(fault->how, "inf") == 0) entry->logprobs[0] = -INFINITY;
  if (strcmp(fault->how, "long") == 0) completion->count = max_new_tokens + 1;
  if (strcmp(fault->how, "count") == 0) completion->count = -1;
  if (strcmp(fault->how, "empty") == 0) completion->count = 0;
  if (strcmp(fault->how, "null") == 0) completion->logprobs = NULL;
  if (strcmp(fault->how, "finish") == 0) completion->finish = 9;
  if (strcmp(fault->how, "abort") == 0) completion->finish = HEXAD_FINISH_ABORT;
  if (strcmp(fault->how, "spans") == 0) completion->num_spans = 0;
  if (strcmp(fault->how, "start") == 0) entry->span.start = 1;
}

static void note(const hexad_generator* self, const hexad_request* request) {
  FILE* file = *self->trace ? fopen(self->trace, "a") : NULL;
  if (!file) return;
  fprintf(file, "request: %lld tokens, at most %lld more, temperature %g, top_p %g, min_p %g, top_k %lld, flags %u\n",
          (long long)request->prompt_size, (long long)request->max_new_tokens, request->temperature, request->top_p,
          request->min_p, (long long)request->top_k, request->flags);
  fclose(file);
}

static hexad_code submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
  hexad_code code = toy_act(&self->fault, self->host, call, "generate");
  if (code == HEXAD_OK) code = self->host->metric(call, "toy_requests", (double)count, 1, HEXAD_REDUCE_SUM);
  for (int64_t i = 0; i < count && code == HEXAD_OK; i++) {
    pending* entry = calloc(1, sizeof *entry);
    note(self, requests[i]);
    sample(self, requests[i], entry);
    entry->span.version = self->version;
    entry->completion.struct_size = HEXAD_STRUCT_SIZE(hexad_completion, error);
    entry->completion.id = requests[i]->id;
    entry->completion.tokens = entry->tokens;
    entry->completion.logprobs = entry->logprobs;
    entry->completion.spans = &entry->span;
    entry->completion.num_spans = entry->completion.count > 0;
    if (toy_fails(&self->fault, self->host, call, "complete")) {
      entry->completion.finish = HEXAD_FINISH_ERROR;
      entry->completion.error = "the toy was told to fail";
    }
    if (toy_fails(&self->fault, self->host, call, "spoil")) spoil(&self->fault, requests[i]->max_new_tokens, entry);
    pthread_mutex_lock(&self->mutex);
    if (self->last) {
      self->last->next = entry;
    } else {
      self->first = entry;
    }
    self->last = entry;
    pthread_mutex_unlock(&self->mutex);
  }
  return code;
}

static hexad_code poll(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                       int64_t timeout_ms, int64_t* count) {
  (void)timeout_ms;
  *count = 0;
  const hexad_code code = toy_act(&self->fault, self->host, call, "poll");
  if (code != HEXAD_OK) return code;
  if (toy_fails(&self->fault, self->host, call, "silence")) {
    usleep(1000);
    if (strcmp(self->fault.how, "alive") == 0) self->host->metric(call, "", 0, 0, HEXAD_REDUCE_SUM);
    return HEXAD_OK;
  }
  if (toy_fails(&self->fault, self->host, call, "events")) {
    *count = strcmp(self->fault.how, "many") == 0 ? max_events + 1 : strcmp(self->fault.how, "null") == 0 ? 1 : -1;
    return HEXAD_OK;
  }
  if (self->poll_ms > 0) usleep((useconds_t)self->poll_ms * 1000), max_events = 1;
  pthread_mutex_lock(&self->mutex);
  for (*count = 0; *count < max_events && self->first; ++*count) {
    events[*count] = &self->first->completion;
    self->first = self->first->next;
  }
  if (!self->first) self->last = NULL;
  pthread_mutex_unlock(&self->mutex);
  return HEXAD_OK;
}
static void release(hexad_generator* self, const hexad_completion* const* events, int64_t count) {
  (void)self;
  for (int64_t i = 0; i < count; i++) free((void*)events[i]);
}
static hexad_code cancel(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count) {
  (void)self, (void)call, (void)ids, (void)count;
  return HEXAD_OK;
}
static hexad_code update_begin(hexad_generator* self, hexad_call* call, int64_t version) {
  self->version = version;
  return toy_act(&self->fault, self->host, call, "refit");
}
static hexad_code update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  (void)call;
  memcpy(self->weights, HEXAD_F32(bucket->slices[0].tensor), sizeof self->weights);
  return HEXAD_OK;
}
static hexad_code update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  (void)self, (void)call, (void)commit;
  return HEXAD_OK;
}
static hexad_code nap(hexad_generator* self, hexad_call* call, int32_t level) {
  (void)level;
  return toy_act(&self->fault, self->host, call, "sleep");
}

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
    .sleep = nap,
};
HEXAD_GENERATOR_PLUGIN("toy_generator", "1.2.0", "Apache-2.0", vtable)
