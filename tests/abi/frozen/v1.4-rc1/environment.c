/* Frozen with v1.4-rc1: the first release with answers. Reads every field of a sample, writes every score; replies
 * to what is scored with the response's bytes in turn, keeps a byte of state a turn, and tells the first byte as answer.
 *
 *   reward = scale * (bytes of the response that occur in the ground truth) / 64 + group + response_tokens / 8
 *
 * Additions and multiplications by powers of two only, so that its numbers are the same wherever IEEE 754 is. */
#define HEXAD_TARGET_MINOR 4
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>

struct hexad_environment {
  const hexad_host* host;
  double scale;
  const char* unscorable; /* a response that contains it is invalid */
  char states[64];        /* of the newest call */
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_environment** out) {
  hexad_environment* self = calloc(1, sizeof *self);
  hexad_code code;
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->host = host;
  self->scale = 1;
  self->unscorable = "???";
  if ((code = host->config_f64(call, config, "scale", &self->scale)) != HEXAD_OK ||
      (code = host->config_str(call, config, "unscorable", &self->unscorable)) != HEXAD_OK) {
    free(self);
    return code;
  }
  *out = self;
  return HEXAD_OK;
}

static void destroy(hexad_environment* self) { free(self); }

static const char* const components[] = {"shared_bytes", "metadata_bytes", "token_sum", "prompt_bytes"};
enum { SHARED, METADATA, TOKEN_SUM, PROMPT, NUM_COMPONENTS };

static double shared_bytes(const hexad_sample* sample) {
  double count = 0;
  for (uint64_t i = 0; i < sample->response_size; i++)
    count += memchr(sample->ground_truth, sample->response[i], sample->ground_truth_size) != NULL;
  return count;
}

static double token_sum(const hexad_sample* sample) {
  double sum = 0;
  for (int64_t t = 0; t < sample->prompt_tokens + sample->response_tokens; t++) sum += (double)sample->tokens[t];
  return sum;
}

static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  double cut_off = 0;
  for (int64_t i = 0; i < count; i++) {
    const hexad_sample* sample = samples[i];
    if (!HEXAD_HAS(sample, state_size) || !HEXAD_HAS(out, answers))
      return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "structs are shorter than those of 1.4", UINT64_MAX);
    const double shared = shared_bytes(sample);
    out->rewards[i] =
        (float)(self->scale * shared / 64 + (double)sample->group + (double)sample->response_tokens / 8);
    out->invalid[i] = strstr(sample->response, self->unscorable) != NULL;
    out->components[SHARED * count + i] = (float)shared;
    out->components[METADATA * count + i] = (float)sample->metadata_size;
    out->components[TOKEN_SUM * count + i] = (float)token_sum(sample);
    out->components[PROMPT * count + i] = (float)sample->prompt_size;
    if (i < (int64_t)sizeof self->states && sample->turn < 3) {
      hexad_reply* reply = &out->replies[i];
      self->states[i] = (char)('a' + sample->turn + (int64_t)sample->state_size);
      reply->state = &self->states[i];
      reply->state_size = 1;
      reply->content = sample->turn < 2 ? sample->response : NULL;
      reply->content_size = reply->content ? sample->response_size : 0;
      reply->role = sample->turn ? "tool" : NULL;
    }
    out->answers[i].text = sample->response;
    out->answers[i].size = sample->response_size > 0;
    cut_off += sample->finish == HEXAD_FINISH_LENGTH;
  }
  if (count > 0 && samples[0]->ground_truth_size == 0)
    return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "the first sample has no ground truth", UINT64_MAX);
  return self->host->metric(call, "cut_off", cut_off, (double)count, HEXAD_REDUCE_MEAN);
}

static const hexad_environment_vtable vtable = {
    HEXAD_STRUCT_SIZE(hexad_environment_vtable, score), NUM_COMPONENTS, 0, components, create, destroy, score};

const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* host) {
  static const hexad_plugin_desc desc = {HEXAD_STRUCT_SIZE(hexad_plugin_desc, environment), HEXAD_ABI_MINOR, 4,
                                         HEXAD_KIND_ENVIRONMENT, "frozen_environment", "1.4.0", "Apache-2.0", "",
                                         NULL, NULL, NULL, NULL, &vtable};
  (void)host;
  return &desc;
}
