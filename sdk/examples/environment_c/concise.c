/* A reward in C: 1 if the response contains the answer, less a cost for every token. Needs ABI 1.1. */
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>

struct hexad_environment {
  double token_cost;
};

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config,
                         hexad_environment** out) {
  double cost = 0.001;
  const hexad_code code = host->config_f64(call, config, "token_cost", &cost);
  if (code != HEXAD_OK) return code;
  if (!(cost >= 0 && cost <= 1)) {
    return host->set_error(call, HEXAD_INVALID_ARGUMENT, "token_cost must lie in [0, 1]", UINT64_MAX);
  }
  hexad_environment* self = malloc(sizeof *self);
  if (!self) return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "out of memory", UINT64_MAX);
  self->token_cost = cost;
  *out = self;
  return HEXAD_OK;
}
static void destroy(hexad_environment* self) { free(self); }

enum { CONTAINED, COST, NUM_COMPONENTS };
static const char* const components[NUM_COMPONENTS] = {"contained", "cost"};

static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                        hexad_scores* out) {
  (void)call;
  for (int64_t i = 0; i < count; i++) {
    const hexad_sample* sample = samples[i];
    const int contained = strstr(sample->response, sample->ground_truth) != NULL;
    const double cost = self->token_cost * (double)sample->response_tokens;
    out->rewards[i] = (float)(contained - cost);
    out->invalid[i] = sample->ground_truth_size == 0; /* the dataset has no answer: not a wrong response */
    out->components[CONTAINED * count + i] = (float)contained;
    out->components[COST * count + i] = (float)cost;
  }
  return HEXAD_OK;
}

static const hexad_environment_vtable vtable = {
    .struct_size = HEXAD_STRUCT_SIZE(hexad_environment_vtable, score),
    .num_components = NUM_COMPONENTS,
    .components = components,
    .create = create,
    .destroy = destroy,
    .score = score,
};
HEXAD_ENVIRONMENT_PLUGIN("concise", "1.0.0", "Apache-2.0", vtable)
