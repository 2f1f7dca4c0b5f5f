/* -sum(mask * advantage * logprob) * scale / N in CUDA memory. It needs neither nvcc nor CUDA's headers: the driver is
 * found at run time and compiles the kernel, which is PTX. Macros break it (cuda_corpus.json). */
#include <dlfcn.h>
#include <hexad/abi.h>
#include <stdlib.h>

#ifndef STREAM
#define STREAM stream
#endif
#ifndef CREATE_END
#define CREATE_END
#endif
#ifndef COMPUTE_BEGIN
#define COMPUTE_BEGIN
#endif
#ifndef COMPUTE_END
#define COMPUTE_END
#endif
#ifndef ON_METRIC_ERROR
#define ON_METRIC_ERROR return code;
#endif
#ifndef COUNT
#define COUNT batch->num_tokens
#endif
#ifndef GRADIENT
#define GRADIENT "neg.f64 %d4, %d2;" /* of %d2 = weight * advantage */
#endif
#ifndef HOST_SIGN
#define HOST_SIGN -1
#endif
#ifndef CAPS
#define CAPS (HEXAD_CAP_CUDA_MEM | HEXAD_CAP_CAPTURABLE)
#endif

/* The driver API. */
static struct {
  int (*module_load)(void**, const void*);
  int (*module_unload)(void*);
  int (*module_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*set_context)(void*);
  int (*context_wait)(void);
  int (*stream_wait)(void*);
  int (*stream_create)(void**, unsigned);
  int (*alloc)(uint64_t*, size_t);
  int (*release)(uint64_t);
  int (*to_host)(void*, uint64_t, size_t);
} cu;

static int find_driver(void) {
  static const char* const names[] = {"cuModuleLoadData", "cuModuleUnload",   "cuModuleGetFunction", "cuLaunchKernel",
                                      "cuCtxSetCurrent",  "cuCtxSynchronize", "cuStreamSynchronize", "cuStreamCreate",
                                      "cuMemAlloc_v2",    "cuMemFree_v2",     "cuMemcpyDtoH_v2"};
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  size_t i;
  for (i = 0; library && i < sizeof names / sizeof *names; ++i) {
    void* address = dlsym(library, names[i]);
    if (!address) return 0;
    ((void**)&cu)[i] = address;
  }
  return library != NULL;
}

/* One thread goes through all tokens: the order of the sum is fixed. */
static const char kernel_text[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry loss(.param .u64 logp, .param .u64 advantages, .param .u64 mask, .param .u64 grad,\n"
    "                     .param .u64 sum, .param .u64 count, .param .f64 scale)\n"
    "{ .reg .pred %p<1>; .reg .f32 %f<2>; .reg .f64 %d<5>; .reg .b64 %a<6>;\n"
    "  ld.param.u64 %a0, [logp]; ld.param.u64 %a1, [advantages]; ld.param.u64 %a2, [mask]; ld.param.u64 %a3, [grad];\n"
    "  ld.param.u64 %a4, [sum]; ld.param.u64 %a5, [count]; ld.param.f64 %d0, [scale];\n"
    "  mov.f64 %d1, 0d0000000000000000;\n"
    "AGAIN: setp.eq.u64 %p0, %a5, 0; @%p0 bra DONE;\n"
    "  ld.f32 %f0, [%a2]; cvt.f64.f32 %d2, %f0; mul.f64 %d2, %d2, %d0;\n"
    "  ld.f32 %f0, [%a1]; cvt.f64.f32 %d3, %f0; mul.f64 %d2, %d2, %d3;\n"
    "  " GRADIENT
    " cvt.rn.f32.f64 %f1, %d4; st.f32 [%a3], %f1;\n"
    "  ld.f32 %f0, [%a0]; cvt.f64.f32 %d3, %f0; mul.f64 %d3, %d2, %d3; sub.f64 %d1, %d1, %d3;\n"
    "  add.u64 %a0, %a0, 4; add.u64 %a1, %a1, 4; add.u64 %a2, %a2, 4; add.u64 %a3, %a3, 4; sub.u64 %a5, %a5, 1;\n"
    "  bra AGAIN;\n"
    "DONE: st.f64 [%a4], %d1; ret; }\n";

struct hexad_loss {
  const hexad_host* host;
  double scale;
  void *module, *kernel, *own_stream;
};

static void destroy(hexad_loss* self) {
  if (self->module) cu.module_unload(self->module);
  free(self);
}

static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  hexad_loss* self = calloc(1, sizeof *self);
  int32_t device_type = kDLCPU, device_id = 0;
  hexad_code code;
  self->host = host;
  self->scale = 1;
  code = host->config_f64(call, config, "scale", &self->scale);
  if (code == HEXAD_OK) code = host->device(call, &device_type, &device_id);
  if (code == HEXAD_OK && device_type == kDLCUDA &&
      (!find_driver() || cu.module_load(&self->module, kernel_text) ||
       cu.module_function(&self->kernel, self->module, "loss")))
    code = host->set_error(call, HEXAD_INTERNAL, "CUDA did not take the kernel", UINT64_MAX);
  if (code != HEXAD_OK) {
    destroy(self);
    return code;
  }
  CREATE_END
  *out = self;
  return HEXAD_OK;
}

static void compute_here(const hexad_loss* self, const hexad_loss_batch* batch, hexad_loss_out* out) {
  int64_t t;
  for (t = 0; t < batch->num_tokens; ++t) {
    const double w = self->scale * HEXAD_F32(batch->inputs[2].tensor)[t] / batch->global_valid_tokens;
    const double slope = HOST_SIGN * w * HEXAD_F32(batch->inputs[1].tensor)[t];
    *HEXAD_F64(out->loss) += slope * HEXAD_F32(batch->inputs[0].tensor)[t];
    HEXAD_F32(out->grads[0])[t] = (float)slope;
  }
}

static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  const hexad_host* host = self->host;
  const DLTensor* logp = batch->inputs[0].tensor;
  void* stream = host->stream(call, logp->device.device_type, logp->device.device_id);
  float* data[4] = {HEXAD_F32(logp), HEXAD_F32(batch->inputs[1].tensor), HEXAD_F32(batch->inputs[2].tensor),
                    HEXAD_F32(out->grads[0])};
  double *sum = HEXAD_F64(out->loss), scale = self->scale / batch->global_valid_tokens;
  int64_t count = COUNT;
  void* parameters[] = {&data[0], &data[1], &data[2], &data[3], &sum, &count, &scale};
  uint64_t block = 0;
  hexad_code code = host->metric(call, "tokens", (double)batch->num_tokens, 1, HEXAD_REDUCE_SUM);
  if (code != HEXAD_OK) {
    ON_METRIC_ERROR
  }
  (void)block;
  if (logp->device.device_type == kDLCPU) {
    compute_here(self, batch, out);
    return HEXAD_OK;
  }
  COMPUTE_BEGIN
  if (cu.launch(self->kernel, 1, 1, 1, 1, 1, 1, 0, STREAM, parameters, NULL))
    return host->set_error(call, HEXAD_INTERNAL, "the launch failed", UINT64_MAX);
  COMPUTE_END
  return HEXAD_OK;
}

static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0},
    {"advantages", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0},
    {"token_mask", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, 0, 0}};
static const hexad_loss_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load),
                                         3,
                                         0,
                                         0,
                                         CAPS,
                                         inputs,
                                         NULL,
                                         create,
                                         destroy,
                                         compute,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL,
                                         NULL};
HEXAD_LOSS_PLUGIN("toy", "1.2.0", "MIT", vtable)
