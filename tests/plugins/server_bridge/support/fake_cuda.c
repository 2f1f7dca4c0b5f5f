/* Stands in for libcuda.so.1 where there is no GPU: device memory is the host's, and everything is done at once. The
   process has to open it first; whoever asks for libcuda.so.1 then gets it. */
#include <stdlib.h>
#include <string.h>

enum { kBadValue = 1 };
static int context_depth = 0;

int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetUuid_v2(void* uuid, int device) {
  for (int i = 0; i < 16; ++i) ((unsigned char*)uuid)[i] = (unsigned char)(i * 0x11);
  return device == 0 ? 0 : kBadValue;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &context_depth, device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxPushCurrent_v2(void* context) { return ++context_depth, context ? 0 : kBadValue; }
int cuCtxPopCurrent_v2(void** context) { return *context = &context_depth, --context_depth, 0; }
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  if (context_depth < 1) return kBadValue;
  *address = (unsigned long long)malloc(bytes);
  memset((void*)*address, 0xA5, bytes);
  return 0;
}
int cuMemFree_v2(unsigned long long address) { return free((void*)address), 0; }
int cuIpcGetMemHandle(void* handle, unsigned long long address) {
  memset(handle, 0, 64);
  memcpy(handle, &address, sizeof address);
  return 0;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  (void)stream;
  if (context_depth < 1) return kBadValue;
  memcpy((void*)to, (void*)from, bytes);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { return *stream = malloc(flags), 0; }
int cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
int cuStreamQuery(void* stream) { return (void)stream, 0; }
int cuStreamSynchronize(void* stream) { return (void)stream, 0; }
