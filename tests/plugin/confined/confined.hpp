// A loss and a generator in C that do what their configuration says, and what tests of confined plugins share.
#pragma once
#include <unistd.h>

#include <csignal>

#include "core/plugin/kind/generator_plugin.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
#include "tests/plugin/plugin_folder.hpp"

namespace confined_test {

using namespace hexad::plugin;
using namespace plugin_test;

// loss = scale * sum(x), d/dx = scale; and faults.
inline constexpr const char* kLoss = R"(
#include <hexad/abi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct hexad_loss { const hexad_host* host; double scale; int64_t calls, frame; const char* mode; const char* json; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  hexad_loss* self = calloc(1, sizeof *self);
  self->host = host, self->scale = 1, self->mode = "";
  hexad_code code = host->config_f64(call, config, "scale", &self->scale);
  if (!code) code = host->config_str(call, config, "mode", &self->mode);
  if (!code) code = host->config_json(call, config, "nested", &self->json);
  if (!code) code = host->config_i64(call, config, "frame", &self->frame);
  if (code) { free(self); return code; }
  if (!strcmp(self->mode, "crash in create")) raise(SIGSEGV);
  *out = self;
  return 0;
}
static void destroy(hexad_loss* self) { free(self); }
extern void _ZSt20__throw_length_errorPKc(const char*);
static void junk(void) {
  char bytes[4096];
  memset(bytes, 0xA5, sizeof bytes);
  for (int fd = 3; fd < 64; fd++) if (write(fd, bytes, sizeof bytes) < 0) continue;
}
/* A frame of this kind that says what it likes, as a plugin could that has overwritten its process's memory. */
static void forge(uint32_t kind) {
  unsigned char bytes[16 + 200] = {'H', 'E', 'X', '1', kind, 0, 0, 0, 200};
  for (int i = 16; i < 216; i++) bytes[i] = (unsigned char)(i * i * 7 + i);
  for (int fd = 3; fd < 64; fd++) if (write(fd, bytes, sizeof bytes) < 0) continue;
}
static hexad_code fault(hexad_loss* self, hexad_call* call) {
  const hexad_host* host = self->host;
  if (!strcmp(self->mode, "crash")) { fprintf(stderr, "about to crash\n"); *(volatile int*)0 = 1; }
  if (!strcmp(self->mode, "exit")) exit(0);
  if (!strcmp(self->mode, "hang")) for (;;) pause();
  if (!strcmp(self->mode, "garbage")) { junk(); for (;;) pause(); }
  if (!strcmp(self->mode, "forge")) { forge((uint32_t)self->frame); for (;;) pause(); }
  /* Descriptor 3 is its control: were that closed too, its reader would now and then end the process first. */
  if (!strcmp(self->mode, "hang up")) { for (int fd = 4; fd < 64; fd++) close(fd); for (;;) pause(); }
  if (!strcmp(self->mode, "throw")) _ZSt20__throw_length_errorPKc("a bug");
  if (!strcmp(self->mode, "silent")) return 77;
  if (!strcmp(self->mode, "cancel")) {
    while (!host->cancelled(call)) usleep(1000);
    return host->set_error(call, HEXAD_CANCELLED, "as asked", UINT64_MAX);
  }
  if (!strcmp(self->mode, "deadline")) {
    char text[64];
    snprintf(text, sizeof text, "step %d, flags %d, %s", (int)host->step(call), (int)host->flags(call),
             host->deadline_ns(call) == INT64_MAX ? "no deadline" : "a deadline");
    return host->set_error(call, HEXAD_DEADLINE_EXCEEDED, text, UINT64_MAX);
  }
  if (!strcmp(self->mode, "group")) {
    hexad_comm* group = (hexad_comm*)1;
    hexad_code code = host->comm_axis(call, "dp", &group);
    return code || group ? 77 : host->barrier(call, group);
  }
  return 0;
}
static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  hexad_code code = fault(self, call);
  if (code) return code;
  const float* x = HEXAD_F32(batch->inputs[0].tensor);
  const float* w = batch->inputs[1].tensor ? HEXAD_F32(batch->inputs[1].tensor) : 0;
  float* grad = HEXAD_F32(out->grads[0]);
  for (int64_t b = 0; b < batch->num_sequences; b++)
    for (int64_t t = batch->cu_seqlens[b]; t < batch->cu_seqlens[b + 1]; t++) {
      if (grad[t] != 0) return 78;
      *HEXAD_F64(out->loss) += self->scale * x[t] * (w ? w[b] : 1) / batch->global_valid_tokens;
      grad[t] = (float)(self->scale * (w ? w[b] : 1) / batch->global_valid_tokens);
    }
  HEXAD_F64(out->metrics)[0] = (double)++self->calls, HEXAD_F64(out->metrics)[1] = 1;
  HEXAD_F64(out->metrics)[2] = (double)getpid(), HEXAD_F64(out->metrics)[3] = 1;
  if (self->json) self->host->log(call, HEXAD_LOG_WARN, self->json, UINT64_MAX);
  return self->host->metric(call, "aside", self->scale, 2, HEXAD_REDUCE_MEAN);
}
static hexad_code plan(hexad_loss* self, hexad_call* call, hexad_loss_plan* plan) {
  if (!strcmp(self->mode, "lean")) plan->used_inputs &= ~(uint64_t)2, plan->used_metrics = 1;
  return 0;
}
static hexad_code advantages(hexad_loss* self, hexad_call* call, const hexad_batch* rollout, DLTensor* out) {
  for (int64_t b = 0; b < rollout->num_sequences; b++)
    for (int64_t t = rollout->cu_seqlens[b]; t < rollout->cu_seqlens[b + 1]; t++)
      HEXAD_F32(out)[t] = HEXAD_F32(rollout->tensors[0].tensor)[b] * (float)self->scale;
  return strcmp(rollout->tensors[0].name, "rewards") ? 79 : 0;
}
static hexad_code end_step(hexad_loss* self, hexad_call* call, const hexad_step_metrics* metrics) {
  if (metrics->count > 0) self->scale = metrics->values[metrics->count - 1];
  return metrics->count > 0 && strcmp(metrics->names[metrics->count - 1], "kl") ? 79 : 0;
}
static hexad_code state_save(hexad_loss* self, hexad_call* call, hexad_sink sink, void* ctx) {
  hexad_code code = sink(ctx, "calls", 5);
  return code ? code : sink(ctx, &self->calls, sizeof self->calls);
}
static hexad_code state_load(hexad_loss* self, hexad_call* call, const void* bytes, uint64_t size) {
  if (size != 13 || memcmp(bytes, "calls", 5)) return self->host->set_error(call, HEXAD_DATA_LOSS, "no state", 8);
  memcpy(&self->calls, (const char*)bytes + 5, 8);
  return 0;
}
#ifndef CAPS
#define CAPS HEXAD_CAP_HOST_MEM
#endif
static const hexad_tensor_spec inputs[] = {{"x", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
                                           {"w", HEXAD_DTYPE_F32, HEXAD_AXIS_SAMPLE, HEXAD_SPEC_OPTIONAL, 0}};
static const hexad_metric_spec metrics[] = {{"calls", HEXAD_REDUCE_LAST, 0}, {"pid", HEXAD_REDUCE_LAST, 0}};
static const hexad_loss_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load), 2, 2, 0, CAPS,
                                         inputs, metrics, create, destroy, compute, plan, advantages, end_step,
                                         state_save, state_load};
HEXAD_LOSS_PLUGIN(NAME, "1.2.0", "MIT", vtable)
)";

// Answers every request with its prompt reversed; poll waits. finish = ERROR with the text of the prompt for odd ids.
inline constexpr const char* kGenerator = R"(
#define HEXAD_TARGET_MINOR 2
#include <hexad/abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define MOST 64
struct column { hexad_named_tensor named; DLTensor view; int64_t shape[3]; int16_t experts[]; };
static void add_column(hexad_completion* made, int64_t tokens) {
  struct column* c = calloc(1, sizeof *c + 4 * tokens);
  for (int64_t i = 0; i < 2 * tokens; i++) c->experts[i] = (int16_t)(i % 5 - 1);
  c->shape[0] = tokens, c->shape[1] = 1, c->shape[2] = 2;
  c->view = (DLTensor){c->experts, {kDLCPU, 0}, 3, {kDLInt, 16, 1}, c->shape, 0, 0};
  c->named = (hexad_named_tensor){"routed_experts", &c->view, 0, HEXAD_AXIS_TOKEN, 0};
  made->columns = &c->named, made->num_columns = 1;
}
struct hexad_generator { const hexad_host* host; pthread_mutex_t lock; hexad_completion* ready[MOST]; int count;
                         int64_t version, arriving, released; float weights[6]; int32_t level, paused; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out) {
  hexad_generator* self = calloc(1, sizeof *self);
  self->host = host;
  pthread_mutex_init(&self->lock, 0);
  *out = self;
  return 0;
}
static void drop(const hexad_completion* event) {
  free((void*)event->columns), free((void*)event->tokens), free((void*)event->logprobs), free((void*)event->spans);
  free((void*)event->error);
  free((void*)event);
}
static void destroy(hexad_generator* self) {
  while (self->count > 0) drop(self->ready[--self->count]);
  free(self);
}
static hexad_code describe(hexad_generator* self, hexad_call* call, hexad_generator_info* info) {
  info->max_sequences = 7, info->caps = HEXAD_GEN_SLEEP, info->weight_form = HEXAD_FORM_SHARD;
  return 0;
}
static hexad_code submit(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count) {
  pthread_mutex_lock(&self->lock);
  for (int64_t i = 0; i < count; i++) {
    const hexad_request* r = requests[i];
    hexad_completion* made = calloc(1, sizeof *made);
    int32_t* tokens = calloc(r->prompt_size, sizeof *tokens);
    float* logprobs = calloc(r->prompt_size, sizeof *logprobs);
    hexad_version_span* span = calloc(1, sizeof *span);
    for (int64_t t = 0; t < r->prompt_size; t++)
      tokens[t] = r->prompt[r->prompt_size - 1 - t], logprobs[t] = -(float)t / 3 + self->weights[t % 6];
    span->version = self->version;
    *made = (hexad_completion){HEXAD_STRUCT_SIZE(hexad_completion, num_columns), HEXAD_FINISH_STOP, r->id, tokens,
                               logprobs, r->prompt_size, span, 1, 0};
    if (r->id != 3) add_column(made, 2 * r->prompt_size);
    if (r->id % 2) {
      char* text = calloc(1, 256);
      uint64_t size = 128;
      hexad_code code = self->host->detokenize(call, r->prompt, r->prompt_size, text, &size);
      if (code) { free(text); drop(made); pthread_mutex_unlock(&self->lock); return code; }
      for (int64_t s = 0; s < r->num_stop_strings; s++) strcat(strcat(text, "|"), r->stop_strings[s]);
      for (int64_t s = 0; s < r->num_stop_token_ids; s++) sprintf(text + strlen(text), "|%d", r->stop_token_ids[s]);
      sprintf(text + strlen(text), "|%.2f", r->temperature);
      made->finish = HEXAD_FINISH_ERROR, made->error = text;
    }
    self->ready[self->count++] = made;
  }
  pthread_mutex_unlock(&self->lock);
  return 0;
}
static hexad_code poll(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                       int64_t timeout_ms, int64_t* count) {
  for (*count = 0; timeout_ms-- >= 0; usleep(1000)) {
    pthread_mutex_lock(&self->lock);
    while (*count < max_events && self->count > 0) events[(*count)++] = self->ready[--self->count];
    pthread_mutex_unlock(&self->lock);
    if (*count > 0 || self->host->cancelled(call)) break;
  }
  return 0;
}
static void release(hexad_generator* self, const hexad_completion* const* events, int64_t count) {
  for (int64_t i = 0; i < count; i++) drop(events[i]), self->released++;
}
static hexad_code cancel(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count) {
  pthread_mutex_lock(&self->lock);
  for (int64_t i = 0; i < count; i++)
    for (int j = 0; j < self->count; j++)
      if (self->ready[j]->id == ids[i]) self->ready[j]->finish = HEXAD_FINISH_ABORT;
  pthread_mutex_unlock(&self->lock);
  return 0;
}
static hexad_code update_begin(hexad_generator* self, hexad_call* call, int64_t version) {
  self->arriving = version;
  return 0;
}
static hexad_code update_bucket(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket) {
  for (int64_t i = 0; i < bucket->count; i++) {
    const hexad_weight_slice* slice = &bucket->slices[i];
    if (strcmp(slice->name, "w") || slice->ndim != 2 || slice->global_shape[0] != 4 || slice->tensor->shape[0] != 2)
      return self->host->set_error(call, HEXAD_INVALID_ARGUMENT, "not w", UINT64_MAX);
    memcpy(self->weights, HEXAD_F32(slice->tensor), sizeof self->weights);
  }
  return 0;
}
static hexad_code update_end(hexad_generator* self, hexad_call* call, int32_t commit) {
  if (commit) self->version = self->arriving;
  return 0;
}
static hexad_code weight_layout(hexad_generator* self, hexad_call* call, hexad_weight_list* out) {
  static const int64_t global[] = {4, 3}, offsets[] = {2, 0}, shape[] = {2, 3};
  static const hexad_weight_slice slices[] = {
      {"w", 0, global, offsets, shape, 2, HEXAD_DTYPE_F32}, {"scalar", 0, 0, 0, 0, 0, HEXAD_DTYPE_F64}};
  out->slices = slices, out->count = 2;
  return 0;
}
static hexad_code pause_(hexad_generator* self, hexad_call* call) { self->paused = 1; return 0; }
static hexad_code sleep_(hexad_generator* self, hexad_call* call, int32_t level) { self->level = level; return 0; }
static hexad_code wake(hexad_generator* self, hexad_call* call) {
  if (self->level != 2 || !self->paused) return self->host->set_error(call, HEXAD_FAILED_PRECONDITION, "awake", 5);
  self->host->metric(call, "released", (double)self->released, 1, HEXAD_REDUCE_SUM);
  return 0;
}
static const hexad_generator_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_generator_vtable, flush_cache), 0,
    create, destroy,
  describe, submit, poll, release, cancel, update_begin, update_bucket, update_end, weight_layout, pause_, 0, sleep_,
  wake, 0};
HEXAD_GENERATOR_PLUGIN(NAME, "1.2.0", "MIT", vtable)
)";

inline fs::path program() {
  const char* build = std::getenv("HEXAD_BUILD_DIR");
  return fs::absolute(build ? build : "build/dev") / "bin/hexad";
}

// One folder a test program: each compiled plugin has a name of its own, so that each test gets a process of its own.
class Plugins {
 public:
  // Loads a new copy of `source`, confined or not.
  const LoadedPlugin& load(Kind kind, const char* source, bool confined, const std::string& flags = "",
                           double limit_s = 20) {
    const std::string name = fmt::format("own_{}", ++count_);
    const std::string standard = "-fexceptions -Wl,--no-as-needed -lm -lstdc++ -lpthread";
    const fs::path library = folder_.compile(name, fmt::format("'-DNAME=\"{}\"' {} {}", name, standard, flags), source);
    folder_.write_manifest(library, name, {{"kind", kind_name(kind)}});
    return again(kind, name, confined, limit_s);
  }
  const LoadedPlugin& again(Kind kind, const std::string& name, bool confined, double limit_s = 20) {
    Options options;
    options.paths = {folder_.path()};
    options.program = program();
    options.call_limit_s = limit_s;
    if (confined) options.own_process = {name};
    return Registry(options, nullptr).load(kind, name);
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  PluginFolder folder_;
  int count_ = 0;
};

inline Plugins& plugins() {
  static Plugins all;
  return all;
}

inline PluginConfig section(const Json& own) { return PluginConfig("loss_fn", {{"plugin_config", own}}); }

// Three tokens in two sequences.
struct LossCall {
  std::vector<float> x{1, 2, 3.5f}, w{0.25f, -3}, grad{9, 9, 9};
  int64_t tokens = 3, sequences = 2;
  std::vector<int64_t> cu{0, 1, 3};
  bool weighted = true;

  LossValue run(LossPlugin& loss, const CallContext& context = {}) {
    const auto tensor = [](std::vector<float>& data, int64_t& size) {
      return DLTensor{data.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, nullptr, 0};
    };
    DLTensor a = tensor(x, tokens), b = tensor(w, sequences), g = tensor(grad, tokens);
    const std::vector<hexad_named_tensor> outputs{{"x", &a, nullptr, HEXAD_AXIS_TOKEN, 0}};
    const std::vector<hexad_named_tensor> inputs{{"w", weighted ? &b : nullptr, nullptr, HEXAD_AXIS_SAMPLE, 0}};
    const std::vector<DLTensor*> grads{&g};
    CallContext own = context;
    if (!own.metric) own.metric = [](const Metric&) {};
    return loss.compute(own, {sequences, tokens, cu.data(), 3, 2}, inputs, outputs, grads);
  }
};

}  // namespace confined_test
