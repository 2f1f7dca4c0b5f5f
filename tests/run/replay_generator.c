/* A generator that answers with the samples of an earlier run. Its file has one sample a line: the request's seed, the
 * number of tokens, then token and log-prob of each. Requests that the file does not know are an error. */
#include <hexad/abi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
  uint64_t seed;
  int64_t count;
  int32_t* tokens;
  float* logprobs;
} sample;

typedef struct answer {
  hexad_completion completion;
  hexad_version_span span;
  struct answer* next;
} answer;

struct hexad_generator {
  const hexad_host* host;
  int64_t version, num_samples;
  sample* samples; /* by seed */
  pthread_mutex_t mutex; /* of the list: submit comes while another thread polls */
  answer *first, *last;
};

static int by_seed(const void* a, const void* b) {
  const uint64_t x = ((const sample*)a)->seed, y = ((const sample*)b)->seed;
  return x < y ? -1 : x > y;
}

static int read_sample(FILE* in, sample* out) {
  unsigned long long seed;
  long count;
  if (fscanf(in, "%llu %ld", &seed, &count) != 2) return 0;
  *out = (sample){seed, count, calloc((size_t)count, sizeof(int32_t)), calloc((size_t)count, sizeof(float))};
  for (long i = 0; i < count; i++) {
    if (fscanf(in, "%d %f", &out->tokens[i], &out->logprobs[i]) != 2) return 0;
  }
  return 1;
}

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out) {
  const char* path = "";
  const hexad_code code = host->config_str(call, config, "file", &path);
  if (code != HEXAD_OK) return code;
  FILE* in = fopen(path, "r");
  if (!in) return host->set_error(call, HEXAD_NOT_FOUND, "plugin_config.file cannot be read", UINT64_MAX);
  hexad_generator* self = calloc(1, sizeof *self);
  self->host = host;
  pthread_mutex_init(&self->mutex, NULL);
  sample read;
  for (int64_t room = 0; read_sample(in, &read); self->samples[self->num_samples++] = read) {
    if (self->num_samples < room) continue;
    room = 2 * room + 1024;
    self->samples = realloc(self->samples, (size_t)room * sizeof(sample));
  }
  fclose(in);
  qsort(self->samples, (size_t)self->num_samples, sizeof(sample), by_seed);
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_generator* self) {
  for (int64_t i = 0; i < self->num_samples; i++) {
    free(self->samples[i].tokens);
    free(self->samples[i].logprobs);
  }
  free(self->samples);
  free(self);
}

static hexad_code describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  (void)self, (void)call;
  info->max_sequences = 64;
  info->max_model_len = 1024;
  return HEXAD_OK;
}

static int stops(const hexad_request* request, int32_t token) {
  for (int64_t i = 0; i < request->num_stop_token_ids; i++) {
    if (request->stop_token_ids[i] == token) return 1;
  }
  return 0;
}

static hexad_code submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const hexad_request* request = requests[i];
    const sample wanted = {request->seed, 0, NULL, NULL};
    const sample* found =
        self->samples ? bsearch(&wanted, self->samples, (size_t)self->num_samples, sizeof wanted, by_seed) : NULL;
    if (!found) return self->host->set_error(call, HEXAD_NOT_FOUND, "no such request in the earlier run", UINT64_MAX);
    answer* entry = calloc(1, sizeof *entry);
    hexad_completion* completion = &entry->completion;
    entry->span.version = self->version;
    completion->struct_size = HEXAD_STRUCT_SIZE(hexad_completion, error);
    completion->id = request->id;
    completion->tokens = found->tokens;
    completion->logprobs = found->logprobs;
    completion->count = found->count;
    completion->spans = &entry->span;
    completion->num_spans = found->count > 0;
    completion->finish =
        found->count > 0 && stops(request, found->tokens[found->count - 1]) ? HEXAD_FINISH_STOP : HEXAD_FINISH_LENGTH;
    pthread_mutex_lock(&self->mutex);
    if (self->last) {
      self->last->next = entry;
    } else {
      self->first = entry;
    }
    self->last = entry;
    pthread_mutex_unlock(&self->mutex);
  }
  return HEXAD_OK;
}

static hexad_code poll(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                       int64_t timeout_ms, int64_t* count) {
  (void)call, (void)timeout_ms;
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
  (void)call;
  self->version = version;
  return HEXAD_OK;
}
static hexad_code update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  (void)self, (void)call, (void)bucket;
  return HEXAD_OK;
}
static hexad_code update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  (void)self, (void)call, (void)commit;
  return HEXAD_OK;
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
};
HEXAD_GENERATOR_PLUGIN("replay", "1.0.0", "Apache-2.0", vtable)
