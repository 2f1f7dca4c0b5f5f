/* The device half of the host table, as a C table: libhexad_runtime.so implements it with LibTorch, CUDA and c10d.
 * core opens that library in a worker before any plugin and never sees more of LibTorch than this file.
 * Internal to one build of the engine: core and runtime are always built together, so nothing here is versioned.
 * Errors: functions return a hexad_code and leave a text in error(), valid on this thread until its next failing
 * call. */
#ifndef HEXAD_RUNTIME_H_
#define HEXAD_RUNTIME_H_

#include <hexad/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hexad_runtime_options {
  int32_t rank, world_size; /* of the run; world_size 1 makes no process group */
  /* The ranks [block_first, block_first + block_size) are the world that this rank's plugins see; block_size 0: all. */
  int32_t block_first, block_size;
  int32_t local_rank, local_size;
  int32_t device_type; /* kDLCPU or kDLCUDA */
  int32_t device_id;
  int32_t threads; /* intra-op threads of this rank */
  int32_t deterministic;
  const char* master_address; /* of rank 0's host, where it alone listens for the run's store */
  int32_t master_port;
  int32_t reserved;
  int64_t timeout_ms; /* of every collective and store wait */
} hexad_runtime_options;

/* A tensor that goes to, or comes from, another rank of a group. It may be strided. */
typedef struct hexad_transfer {
  const DLTensor* tensor;
  int32_t peer;
  int32_t reserved;
} hexad_transfer;

typedef struct hexad_runtime {
  hexad_code (*start)(const hexad_runtime_options* options);
  void (*stop)(void); /* destroys process groups; the process ends with _exit after this */
  const char* (*error)(void);
  const char* (*libtorch_version)(void); /* "2.11.0" */
  const char* (*cuda_version)(void);     /* "13.0", or "" */
  int32_t (*cuda_device_count)(void);
  const char* (*cuda_device_name)(int32_t device_id); /* "NVIDIA H100 80GB HBM3"; "" without CUDA. Of this thread */
  int64_t (*cuda_bytes_used)(int32_t device_id); /* of the whole device, by all that it runs; 0 without CUDA */

  void* (*stream)(int32_t device_type, int32_t device_id);
  hexad_code (*alloc)(int32_t device_type, int32_t device_id, uint64_t bytes, void** out);
  void (*free)(void* pointer, int32_t device_type, int32_t device_id);
  hexad_code (*tensor_new)(const DLTensor* prototype, DLManagedTensorVersioned** out);
  /* Copies between any two devices. To the CPU: complete at return. From it: `source` is free at return, the rest
   * follows in the stream's order. Same dtype and size. */
  hexad_code (*copy)(const DLTensor* source, DLTensor* destination);

  /* As the host table's; "world" and the ranks of comm_new are those of the block. */
  hexad_code (*comm_axis)(const char* axis, hexad_comm** out);
  hexad_code (*comm_new)(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out);
  int32_t (*comm_rank)(const hexad_comm* comm);
  int32_t (*comm_size)(const hexad_comm* comm);
  hexad_code (*all_reduce)(hexad_comm* comm, DLTensor* tensor, int32_t op);
  hexad_code (*all_gather)(hexad_comm* comm, const DLTensor* in, DLTensor* out);
  hexad_code (*reduce_scatter)(hexad_comm* comm, const DLTensor* in, DLTensor* out);
  hexad_code (*broadcast)(hexad_comm* comm, DLTensor* tensor, int32_t root);
  hexad_code (*barrier)(hexad_comm* comm);
  /* As comm_new, of ranks of the run: blocks meet in it. */
  hexad_code (*comm_across)(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out);
  /* Sends and receives all at once (NCCL: one group). The k-th tensor that a rank sends to another is the k-th that
   * this one receives from it, of the same size and type. Received in the current stream's order; on the CPU at
   * return. */
  hexad_code (*exchange)(hexad_comm* comm, const hexad_transfer* sends, int64_t num_sends,
                         const hexad_transfer* receives, int64_t num_receives);
  hexad_code (*comm_native)(hexad_comm* comm, const char* kind, void** out);
  hexad_code (*kv_put)(const char* key, const void* value, uint64_t size);
  hexad_code (*kv_get)(const char* key, int64_t timeout_ms, const void** value,
                       uint64_t* size); /* valid until the next kv_get of this thread */
  /* A trace of this process's operators and of its GPU's kernels, from start to save, which writes Chrome's JSON. Both
   * on the thread whose calls are traced; one at a time. */
  hexad_code (*trace_start)(void);
  hexad_code (*trace_save)(const char* path);
  void (*range_push)(const char* name);
  void (*range_pop)(void);
} hexad_runtime;

/* The library's one entry. */
HEXAD_EXPORT const hexad_runtime* hexad_runtime_table(void);

#ifdef __cplusplus
}
#endif

#endif /* HEXAD_RUNTIME_H_ */
