/* Hexad plugin ABI, major 1 (v1-rc). C11, C17 and C++; includes only libc and dlpack.h.
 *
 * A plugin is a shared object with ONE exported symbol, hexad_plugin_query_v1. It links nothing of the engine: every
 * service arrives in the hexad_host table. This file is the whole contract; the C++20 wrapper (plugin.hpp) adds nothing to it.
 *
 * RULES (the long form with "who checks it" is ABI.md)
 *  Versions   Structs that begin with struct_size grow only at the end. Read a field of a struct that the other side filled
 *             only if HEXAD_HAS(p, field). Such structs travel by pointer, never inside arrays. Structs without struct_size
 *             are frozen for ever.
 *  Errors     Fallible functions return a hexad_code; the text goes to host->set_error(call, ...), which copies it. On
 *             failure leave out-parameters untouched. Cleanup functions return void. Nothing may throw across the edge.
 *  Ownership  Pointers that a function receives are borrowed until it returns, unless its comment says otherwise.
 *  Tensors    In: const DLTensor*, contiguous, ready in stream order on host->stream(call, device). Out: preallocated by the
 *             caller and zeroed. Whatever outlives the call is a DLManagedTensorVersioned with its deleter.
 *  Streams    Enqueue on host->stream(call, ...) and return without synchronising. CPU tensors are complete at return.
 *  Threads    Q query: alone in its .so. L lifecycle: exclusive per instance, may block. C compute: one at a time per
 *             instance, any OS thread. A: any time, from any thread, concurrently with C. Each function names its class.
 *  Sequences  Per-token arrays are packed: sequence b holds the tokens [cu_seqlens[b], cu_seqlens[b+1]).
 *             Log-prob convention: fp32, position i holds the log-prob of token i given what precedes it in its sequence;
 *             the first position of each sequence holds 0.
 */
#ifndef HEXAD_ABI_H_
#define HEXAD_ABI_H_

#include <dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEXAD_ABI_MAJOR 1
#define HEXAD_ABI_MINOR 4
/* The lowest host minor that the plugin needs; names newer than it are hidden. The default is the most portable build. */
#ifndef HEXAD_TARGET_MINOR
#define HEXAD_TARGET_MINOR 0
#endif

/* Bytes up to and including `last`: never sizeof, which may count padding. */
#define HEXAD_STRUCT_SIZE(type, last) (offsetof(type, last) + sizeof(((type*)0)->last))
/* True if the other side's struct is long enough to hold `field`. Function pointers may still be NULL. */
#define HEXAD_HAS(p, field) \
  ((size_t)(p)->struct_size >= (size_t)((const char*)&(p)->field - (const char*)(p)) + sizeof((p)->field))

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

typedef int32_t hexad_code; /* 0 or one of the canonical (absl) numbers below */
#define HEXAD_OK 0
#define HEXAD_CANCELLED 1
#define HEXAD_INVALID_ARGUMENT 3
#define HEXAD_DEADLINE_EXCEEDED 4
#define HEXAD_NOT_FOUND 5
#define HEXAD_RESOURCE_EXHAUSTED 8
#define HEXAD_FAILED_PRECONDITION 9
#define HEXAD_UNIMPLEMENTED 12
#define HEXAD_INTERNAL 13
#define HEXAD_UNAVAILABLE 14 /* the host may retry */
#define HEXAD_DATA_LOSS 15

#define HEXAD_LOG_DEBUG 0
#define HEXAD_LOG_INFO 1
#define HEXAD_LOG_WARN 2
#define HEXAD_LOG_ERROR 3

/* ---- The universal currency: named tensors ----------------------------------------------------------------------- */

#define HEXAD_AXIS_NONE 0   /* as it is */
#define HEXAD_AXIS_TOKEN 1  /* leading dimension T, packed by the batch's cu_seqlens */
#define HEXAD_AXIS_SAMPLE 2 /* leading dimension B, one row a sequence */
#define HEXAD_AXIS_GROUP 3  /* leading dimension: prompts (groups of samples) */
#define HEXAD_AXIS_RAGGED 4 /* leading dimension: sum of `lengths` */

typedef struct hexad_named_tensor { /* frozen */
  const char* name;
  DLTensor* tensor;        /* NULL: an optional input that this batch does not have */
  const DLTensor* lengths; /* i64 [N] for HEXAD_AXIS_RAGGED, else NULL */
  int32_t axis;
  uint32_t reserved;
} hexad_named_tensor;

#define HEXAD_SPEC_OPTIONAL 1u       /* may be absent (tensor == NULL) */
#define HEXAD_SPEC_DIFFERENTIABLE 2u /* an output of the backend that the loss returns a gradient for */

/* A name that a plugin needs. Its compute receives tensors in the order declared: access is by index. */
typedef struct hexad_tensor_spec { /* frozen */
  const char* name;
  DLDataType dtype;
  int32_t axis;
  uint32_t flags;
  uint32_t reserved;
} hexad_tensor_spec;

#define HEXAD_REDUCE_SUM 0  /* sum of value */
#define HEXAD_REDUCE_MEAN 1 /* sum of value / sum of weight */
#define HEXAD_REDUCE_MIN 2  /* over entries with weight > 0 */
#define HEXAD_REDUCE_MAX 3
#define HEXAD_REDUCE_LAST 4

typedef struct hexad_metric_spec { /* frozen */
  const char* name;
  int32_t reduce;
  uint32_t reserved;
} hexad_metric_spec;

/* A group of sequences. Host memory; every array contiguous. */
typedef struct hexad_batch {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t num_sequences;             /* B */
  int64_t num_tokens;                /* T = cu_seqlens[B] */
  const int64_t* cu_seqlens;         /* [B + 1], starts with 0, never decreases */
  const hexad_named_tensor* tensors; /* what the backend declared in describe(); input_ids i64 [T] always first */
  int64_t num_tensors;
  int64_t padded_length; /* 0: run packed. S > 0: run as [B, S], right-padded; T-shaped tensors stay packed at this edge */
  int64_t is_dummy;      /* 1: fills up a rank so that all ranks make the same number of passes; its loss counts 0 */
} hexad_batch;

/* ---- Opaque handles ---------------------------------------------------------------------------------------------- */

typedef struct hexad_call hexad_call;     /* one call of the host into a plugin; valid until that function returns */
typedef struct hexad_config hexad_config; /* a YAML subtree; valid until the instance is destroyed */
typedef struct hexad_comm hexad_comm;     /* a process group; valid until the instance is destroyed */

#define HEXAD_CALL_CAPTURING 1u     /* a CUDA graph is being captured: only plugins with HEXAD_CAP_CAPTURABLE see this */
#define HEXAD_CALL_DETERMINISTIC 2u /* the run asked for bitwise repeatable results */

#define HEXAD_OP_SUM 0
#define HEXAD_OP_MAX 1
#define HEXAD_OP_MIN 2

/* ---- Host services: one immutable table for the life of the process; every function from any thread -------------- */

typedef struct hexad_host {
  uint32_t struct_size;
  uint32_t abi_minor;
  void* ctx; /* the host's own; pass nothing of it on */
  const char* version;

  /* Copies `text` at once (size UINT64_MAX: up to its NUL). The first error of a call wins. Returns `code`. */
  hexad_code (*set_error)(hexad_call* call, hexad_code code, const char* text, uint64_t size);
  int32_t (*log_enabled)(int32_t level);
  void (*log)(hexad_call* call, int32_t level, const char* text, uint64_t size); /* call may be NULL */
  /* A host-side scalar of this step, reduced over ranks: HEXAD_REDUCE_*. Mean: value is the weighted sum. One with the
   * name "" is none: it tells that a generator is at work, and has no event yet. */
  hexad_code (*metric)(hexad_call* call, const char* name, double value, double weight, int32_t reduce);

  /* Configuration. `path` is dotted ("optimizer.kwargs.lr"), looked up in the section's plugin_config first, then in the
   * section that names the plugin. Absent or null: *inout keeps its default. A wrong type fails and names file:line.
   * Keys of plugin_config that nothing has read when create returns are an error of the run, with a suggestion. */
  hexad_code (*config_i64)(hexad_call* call, const hexad_config* config, const char* path, int64_t* inout);
  hexad_code (*config_f64)(hexad_call* call, const hexad_config* config, const char* path, double* inout);
  hexad_code (*config_bool)(hexad_call* call, const hexad_config* config, const char* path, int32_t* inout);
  hexad_code (*config_str)(hexad_call* call, const hexad_config* config, const char* path, const char** inout);
  /* The subtree as JSON text (whole section: path ""); *out = NULL when absent, "null" where null is written. Counts as
   * reading all of it. */
  hexad_code (*config_json)(hexad_call* call, const hexad_config* config, const char* path, const char** out);

  /* The call. */
  hexad_code (*device)(hexad_call* call, int32_t* device_type, int32_t* device_id); /* this worker's: kDLCPU or kDLCUDA */
  void* (*stream)(hexad_call* call, int32_t device_type, int32_t device_id);       /* cudaStream_t; NULL on CPU */
  int32_t (*cancelled)(hexad_call* call);
  int64_t (*deadline_ns)(hexad_call* call); /* CLOCK_MONOTONIC; INT64_MAX: none */
  int64_t (*step)(hexad_call* call);
  uint64_t (*flags)(hexad_call* call);

  /* Memory: the process's caching allocator, stream-ordered. free accepts NULL. */
  hexad_code (*alloc)(hexad_call* call, int32_t device_type, int32_t device_id, uint64_t bytes, void** out);
  void (*free)(void* pointer, int32_t device_type, int32_t device_id);
  /* A tensor of the prototype's dtype, shape and device; the caller owns it and calls its deleter. */
  hexad_code (*tensor_new)(hexad_call* call, const DLTensor* prototype, DLManagedTensorVersioned** out);

  /* Process groups. axis: "world", "dp", "tp", "pp", "cp", "ep" (those that this worker has). *out = NULL when the group
   * has one rank. Collectives are enqueued on the call's stream; every rank of the group calls them in the same order. */
  hexad_code (*comm_axis)(hexad_call* call, const char* axis, hexad_comm** out);
  int32_t (*comm_rank)(const hexad_comm* comm);
  int32_t (*comm_size)(const hexad_comm* comm);
  hexad_code (*all_reduce)(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t op);
  hexad_code (*all_gather)(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out);     /* out: size * in */
  hexad_code (*reduce_scatter)(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out); /* in: size * out */
  hexad_code (*broadcast)(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t root);
  hexad_code (*barrier)(hexad_call* call, hexad_comm* comm);
  /* The group under a library's own type, borrowed: "c10d" -> c10d::ProcessGroup*, "nccl" -> ncclComm_t. */
  hexad_code (*comm_native)(hexad_call* call, hexad_comm* comm, const char* kind, void** out);
  /* A group of an explicit list of world ranks, for plugins that lay out their own grids. Collective: EVERY rank of the
   * world calls it with the same list in the same order; ranks outside the list get *out = NULL. */
  hexad_code (*comm_new)(hexad_call* call, const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out);
  /* Key/value store of the run. get waits up to timeout_ms; *value is valid until the call returns. */
  hexad_code (*kv_put)(hexad_call* call, const char* key, const void* value, uint64_t size);
  hexad_code (*kv_get)(hexad_call* call, const char* key, int64_t timeout_ms, const void** value, uint64_t* size);

  /* Trace ranges (NVTX and the engine's own). */
  void (*range_push)(hexad_call* call, const char* name);
  void (*range_pop)(hexad_call* call);

  /* The run's tokenizer: text of `ids`, special tokens kept. *size: in capacity of `text`, out bytes needed (a larger
   * need than the capacity writes nothing and is no error). For generators that match stop strings. */
  hexad_code (*detokenize)(hexad_call* call, const int32_t* ids, int64_t count, char* text, uint64_t* size);

  /* A whole table by name ("hexad.ext.<name>"); NULL: absent. "x-" names demand the host's exact build. */
  const void* (*extension)(const char* name, uint32_t min_version);
} hexad_host;

/* ---- Loss -------------------------------------------------------------------------------------------------------- */

#define HEXAD_CAP_HOST_MEM 1u         /* compute takes host memory; the host copies device tensors over and back */
#define HEXAD_CAP_CUDA_MEM 2u         /* compute takes CUDA memory; with both, the host chooses */
#define HEXAD_CAP_CAPTURABLE 4u       /* compute may run under CUDA graph capture */
#define HEXAD_CAP_NONDETERMINISTIC 8u /* two runs may differ in the last bits */

typedef struct hexad_loss hexad_loss; /* the plugin's own type */

typedef struct hexad_loss_batch {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t num_sequences;            /* B; whole sequences in order, also under context parallelism */
  int64_t num_tokens;               /* T */
  const int64_t* cu_seqlens;        /* [B + 1], host memory */
  double global_valid_tokens;       /* of the whole global batch, over all ranks and micro-batches */
  double global_valid_sequences;    /* likewise */
  const hexad_named_tensor* inputs; /* in the order of hexad_loss_vtable.inputs */
  int64_t num_inputs;
  int64_t padded_length;            /* as hexad_batch's: 0 if the backend ran it packed. The arrays are packed anyway */
} hexad_loss_batch;

/* Preallocated and zeroed, in the memory of the inputs, so that no device has to be waited for. */
typedef struct hexad_loss_out {
  uint32_t struct_size;
  uint32_t reserved;
  DLTensor* loss;         /* f64 [1]: this batch's share, already divided by the global normalizer */
  DLTensor* const* grads; /* f32, like the inputs; one per DIFFERENTIABLE input in declared order: d loss / d input.
                             An entry is NULL where that input was absent. */
  int64_t num_grads;
  DLTensor* metrics; /* f64 [num_metrics, 2]: {value, weight} per hexad_metric_spec.reduce */
} hexad_loss_out;

/* What create's configuration makes of the declared lists; the host fills it with all ones before the call. */
typedef struct hexad_loss_plan {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t used_inputs;  /* bit i: inputs[i] is needed. A dropped reference_policy_logprobs saves its forward pass */
  uint64_t used_metrics; /* bit i: metrics[i] is reported */
} hexad_loss_plan;

/* Metrics of a finished step, reduced over micro-batches and ranks. */
typedef struct hexad_step_metrics {
  uint32_t struct_size;
  uint32_t reserved;
  const char* const* names;
  const double* values;
  int64_t count;
} hexad_step_metrics;

/* Takes bytes of state, in order; any number of calls. */
typedef hexad_code (*hexad_sink)(void* ctx, const void* bytes, uint64_t size);

typedef struct hexad_loss_vtable {
  uint32_t struct_size;
  uint32_t num_inputs;
  uint32_t num_metrics;
  uint32_t reserved;
  uint64_t caps;
  const hexad_tensor_spec* inputs;
  const hexad_metric_spec* metrics;
  hexad_code (*create)(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out); /* L */
  void (*destroy)(hexad_loss* self);                                                                           /* L */
  hexad_code (*compute)(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out); /* C */
  /* Optional: NULL takes the engine's default. */
  hexad_code (*plan)(hexad_loss* self, hexad_call* call, hexad_loss_plan* plan); /* L */
  /* Replaces the engine's advantage estimator: rewards f32 [B] and the batch's arrays -> advantages f32 [T]. */
  hexad_code (*advantages)(hexad_loss* self, hexad_call* call, const hexad_batch* rollout, DLTensor* out); /* C */
  hexad_code (*end_step)(hexad_loss* self, hexad_call* call, const hexad_step_metrics* metrics);           /* C */
  hexad_code (*state_save)(hexad_loss* self, hexad_call* call, hexad_sink sink, void* ctx);                /* L */
  hexad_code (*state_load)(hexad_loss* self, hexad_call* call, const void* bytes, uint64_t size);          /* L */
} hexad_loss_vtable;

/* ---- Weights: one mechanism for refit, checkpoints and converters ------------------------------------------------ */

#define HEXAD_WEIGHTS_CURRENT 0
#define HEXAD_WEIGHTS_REFERENCE 1
#define HEXAD_WEIGHTS_SNAPSHOT 2
#define HEXAD_WEIGHTS_GRADIENTS 3 /* accumulated, unclipped; export only */

/* A slice of a weight under its Hugging Face name: elements [offsets[d], offsets[d] + shape[d]) of global_shape. */
typedef struct hexad_weight_slice { /* frozen */
  const char* name;
  const DLTensor* tensor; /* its data; NULL in a layout, which describes and does not carry */
  const int64_t* global_shape;
  const int64_t* offsets;
  const int64_t* shape;
  int32_t ndim;
  DLDataType dtype;
} hexad_weight_slice;

/* Borrowed from the plugin: a layout until destroy, a bucket until the next weights_next or weights_end. */
typedef struct hexad_weight_list {
  uint32_t struct_size;
  uint32_t reserved;
  const hexad_weight_slice* slices;
  int64_t count;
} hexad_weight_list;

#define HEXAD_FORM_FULL 0  /* every rank receives whole weights, gathered bucket by bucket */
#define HEXAD_FORM_SHARD 1 /* every rank receives its own slices, without communication */

typedef struct hexad_weights_request {
  uint32_t struct_size;
  int32_t which; /* HEXAD_WEIGHTS_* */
  int32_t form;  /* HEXAD_FORM_* */
  uint32_t reserved;
  int64_t max_bucket_bytes; /* a hint; one weight is never split */
} hexad_weights_request;

/* ---- Backend ----------------------------------------------------------------------------------------------------- */

typedef struct hexad_backend hexad_backend; /* the plugin's own type */

typedef struct hexad_backend_info {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t num_parameters;       /* of the whole model */
  int64_t dp_rank, dp_size;     /* batches are sharded over dp */
  int64_t tp_size, pp_size, cp_size, ep_size;
  int64_t sequence_multiple;    /* sequences are padded to a multiple of this many tokens */
  int64_t micro_batch_multiple; /* the number of micro-batches of a train call is a multiple of this */
  int64_t counts_loss;          /* 1: this rank's loss and metrics count; 0: another rank of the same dp_rank reports them */
  const char* const* outputs;   /* differentiable outputs that it can make: logprobs, entropy, values, ... */
  int64_t num_outputs;
  /* Names it wants in hexad_batch.tensors, in this order; the first is input_ids. Another's tensor is NULL where the batch
   * has no such column. */
  const char* const* inputs;
  int64_t num_inputs;
} hexad_backend_info;

/* Called by the backend once per micro-batch, on the ranks that hold its outputs. `outputs` in the order that the host
 * asked for (hexad_train_args.outputs); `grads` likewise, preallocated, written before it returns. */
typedef struct hexad_loss_callback {
  uint32_t struct_size;
  uint32_t reserved;
  void* ctx;
  hexad_code (*compute)(void* ctx, hexad_call* call, int64_t batch_index, const hexad_named_tensor* outputs,
                        DLTensor* const* grads, int64_t num_outputs);
} hexad_loss_callback;

typedef struct hexad_train_args {
  uint32_t struct_size;
  uint32_t reserved;
  const hexad_batch* const* batches; /* the micro-batches of one global batch on this rank */
  int64_t num_batches;
  const char* const* outputs; /* what the loss differentiates */
  int64_t num_outputs;
  const hexad_loss_callback* loss;
  double temperature; /* logits are divided by it before the log-softmax */
  int64_t top_k;      /* 0: off. Sampling filters, applied to the logits as the generator applied them */
  double top_p;       /* 1: off */
} hexad_train_args;

typedef struct hexad_forward_args {
  uint32_t struct_size;
  int32_t which; /* HEXAD_WEIGHTS_CURRENT, _REFERENCE or _SNAPSHOT */
  const hexad_batch* const* batches;
  int64_t num_batches;
  hexad_named_tensor* const* outputs; /* [num_batches][num_outputs], host memory, preallocated */
  int64_t num_outputs;
  double temperature;
  int64_t top_k;
  double top_p;
} hexad_forward_args;

#define HEXAD_STEP_DISCARD 1u /* drop the accumulated gradients, change nothing */

typedef struct hexad_step_args {
  uint32_t struct_size;
  uint32_t flags;
  double lr;           /* of this step; NaN: the optimizer's own */
  double weight_decay; /* NaN: the optimizer's own */
  double max_grad_norm; /* <= 0 or NaN: no clipping */
} hexad_step_args;

typedef struct hexad_step_stats {
  uint32_t struct_size;
  uint32_t skipped;  /* 1: the gradient was not finite, nothing was changed but the gradients dropped */
  double grad_norm;  /* L2 over all ranks, before clipping */
} hexad_step_stats;

#define HEXAD_CHECKPOINT_MODEL 1u     /* HF safetensors + config.json under uri */
#define HEXAD_CHECKPOINT_OPTIMIZER 2u /* optimizer state; reloads under any number of ranks */

typedef struct hexad_checkpoint_args {
  uint32_t struct_size;
  uint32_t what;             /* HEXAD_CHECKPOINT_* bits */
  const char* weights_uri;   /* directory: policy/weights */
  const char* optimizer_uri; /* directory: policy/optimizer */
  int32_t which;             /* HEXAD_WEIGHTS_CURRENT or _REFERENCE (load only) */
  uint32_t reserved;
} hexad_checkpoint_args;

#define HEXAD_OFFLOAD_PARAMS 1u
#define HEXAD_OFFLOAD_OPTIMIZER 2u
#define HEXAD_OFFLOAD_REFERENCE 4u

typedef struct hexad_memory_stats {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t parameter_bytes, gradient_bytes, optimizer_bytes, activation_peak_bytes, allocated_bytes, reserved_bytes;
} hexad_memory_stats;

typedef struct hexad_backend_vtable {
  uint32_t struct_size;
  uint32_t reserved;
  /* `config` is the `policy` section. create loads the model that model_name names. */
  hexad_code (*create)(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_backend** out); /* L */
  void (*destroy)(hexad_backend* self);                                                                           /* L */
  hexad_code (*describe)(hexad_backend* self, hexad_call* call, hexad_backend_info* info);                        /* L */
  /* No gradients; fills `outputs` of every batch ("logprobs" f32 [T], "entropy" f32 [T], "values" f32 [T]). */
  hexad_code (*forward)(hexad_backend* self, hexad_call* call, const hexad_forward_args* args); /* C */
  /* Forward and backward over the micro-batches; gradients are summed over them and over dp. Call step next. */
  hexad_code (*train)(hexad_backend* self, hexad_call* call, const hexad_train_args* args);                          /* C */
  hexad_code (*step)(hexad_backend* self, hexad_call* call, const hexad_step_args* args, hexad_step_stats* stats);   /* C */
  /* Keeps a copy of the current weights under REFERENCE or SNAPSHOT. */
  hexad_code (*keep)(hexad_backend* self, hexad_call* call, int32_t which); /* C */
  hexad_code (*load)(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args); /* L */
  hexad_code (*save)(hexad_backend* self, hexad_call* call, const hexad_checkpoint_args* args); /* L; complete at return */
  /* This rank's slices of the model. Then iteration: begin, next until count == 0, end. Every rank takes part. */
  hexad_code (*weight_layout)(hexad_backend* self, hexad_call* call, hexad_weight_list* out);                     /* L */
  hexad_code (*weights_begin)(hexad_backend* self, hexad_call* call, const hexad_weights_request* request);       /* C */
  hexad_code (*weights_next)(hexad_backend* self, hexad_call* call, hexad_weight_list* out);                      /* C */
  void (*weights_end)(hexad_backend* self);                                                                      /* C */
  /* Optional. */
  hexad_code (*offload)(hexad_backend* self, hexad_call* call, uint64_t what);          /* L */
  hexad_code (*onload)(hexad_backend* self, hexad_call* call, uint64_t what);           /* L */
  hexad_code (*memory)(hexad_backend* self, hexad_call* call, hexad_memory_stats* out); /* A */
} hexad_backend_vtable;

/* ---- Generator --------------------------------------------------------------------------------------------------- */

typedef struct hexad_generator hexad_generator; /* the plugin's own type */

#define HEXAD_GEN_STREAMING 1u       /* poll may return partial completions */
#define HEXAD_GEN_UPDATE_INFLIGHT 2u /* weights may change while requests run */
#define HEXAD_GEN_SLEEP 4u
#if HEXAD_TARGET_MINOR >= 2
#define HEXAD_GEN_ROUTED_EXPERTS 8u /* completions carry the column "routed_experts" on request (since 1.2) */
#endif

typedef struct hexad_generator_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t caps;
  int64_t max_sequences;   /* that run at once */
  int64_t max_model_len;   /* prompt + response, tokens */
  int64_t kv_capacity;     /* tokens of KV cache; 0: unknown */
  int64_t weight_form;     /* HEXAD_FORM_* that update_bucket wants */
} hexad_generator_info;

#define HEXAD_REQUEST_GREEDY 1u
#define HEXAD_REQUEST_IGNORE_EOS 2u
#define HEXAD_REQUEST_STREAM 4u /* report partial completions */

typedef struct hexad_request {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t id;    /* unique among running requests */
  uint64_t group; /* requests of one group share their prompt; it is computed once */
  const int32_t* prompt;
  int64_t prompt_size;    /* tokens, at least 1 */
  int64_t max_new_tokens; /* at least 1 */
  uint64_t seed;          /* draws are keyed by (seed, position): equal seeds give equal samples */
  double temperature;     /* 0: greedy */
  double top_p;           /* 1: off */
  double min_p;           /* 0: off */
  int64_t top_k;          /* 0: off */
  const int32_t* stop_token_ids;
  int64_t num_stop_token_ids; /* the token that stops is kept in the completion */
  const char* const* stop_strings;
  int64_t num_stop_strings; /* likewise */
} hexad_request;

#define HEXAD_FINISH_NONE 0 /* partial */
#define HEXAD_FINISH_STOP 1
#define HEXAD_FINISH_LENGTH 2
#define HEXAD_FINISH_ABORT 3
#define HEXAD_FINISH_ERROR 4 /* text: `error` */

/* Tokens [start, next span's start) were sampled under this weight version. */
typedef struct hexad_version_span { /* frozen */
  int64_t start;
  int64_t version;
} hexad_version_span;

typedef struct hexad_completion {
  uint32_t struct_size;
  int32_t finish;
  uint64_t id;
  const int32_t* tokens;           /* all so far */
  const float* logprobs;           /* of those tokens under the distribution they were drawn from */
  int64_t count;
  const hexad_version_span* spans; /* at least one when count > 0 */
  int64_t num_spans;
  const char* error; /* NULL unless HEXAD_FINISH_ERROR */
#if HEXAD_TARGET_MINOR >= 2
  /* Per-token arrays of the prompt and the completion together, of a request that has ended: HEXAD_AXIS_TOKEN, contiguous
   * host memory, [prompt_size + count, ...]. They travel with the sample under their names; a backend gets those that it
   * lists among its inputs. Known: "routed_experts" i16 [tokens, layers with experts, experts a token], where the router
   * sent a token when it was first run; -1 throughout a token that never was (the last one). Wanted where the generator's configuration
   * says return_routed_experts: true. Since 1.2. */
  const hexad_named_tensor* columns;
  int64_t num_columns;
#endif
} hexad_completion;

typedef struct hexad_generator_vtable {
  uint32_t struct_size;
  uint32_t reserved;
  /* `config` is the `policy.generation` section with model_name, precision and max_total_sequence_length added. */
  hexad_code (*create)(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_generator** out); /* L */
  void (*destroy)(hexad_generator* self);                                                                           /* L */
  hexad_code (*describe)(hexad_generator* self, hexad_call* call, hexad_generator_info* info);                      /* L */
  hexad_code (*submit)(hexad_generator* self, hexad_call* call, const hexad_request* const* requests, int64_t count); /* A */
  /* Runs or waits for up to timeout_ms until at least one event is there; *count = 0 is no error. The events belong to
   * the generator until release. Every request ends with exactly one event whose finish is not NONE. */
  hexad_code (*poll)(hexad_generator* self, hexad_call* call, const hexad_completion** events, int64_t max_events,
                     int64_t timeout_ms, int64_t* count); /* A, one poller at a time */
  void (*release)(hexad_generator* self, const hexad_completion* const* events, int64_t count);                  /* A */
  hexad_code (*cancel)(hexad_generator* self, hexad_call* call, const uint64_t* ids, int64_t count);             /* A */
  /* Refit: begin, buckets, end. commit = 0 leaves the old weights in force; a failed update likewise. */
  hexad_code (*update_begin)(hexad_generator* self, hexad_call* call, int64_t version);            /* C */
  hexad_code (*update_bucket)(hexad_generator* self, hexad_call* call, const hexad_weight_list* bucket); /* C */
  hexad_code (*update_end)(hexad_generator* self, hexad_call* call, int32_t commit);               /* C */
  /* Optional. */
  hexad_code (*weight_layout)(hexad_generator* self, hexad_call* call, hexad_weight_list* out); /* L */
  hexad_code (*pause)(hexad_generator* self, hexad_call* call);                                 /* C */
  hexad_code (*resume)(hexad_generator* self, hexad_call* call);                                /* C */
  hexad_code (*sleep)(hexad_generator* self, hexad_call* call, int32_t level); /* C; 1: free KV, 2: free weights too */
  hexad_code (*wake)(hexad_generator* self, hexad_call* call);                 /* C; after level 2 an update must follow */
  hexad_code (*flush_cache)(hexad_generator* self, hexad_call* call);          /* C; forgets shared prefixes */
} hexad_generator_vtable;

/* ---- Environment (ABI 1.1): rewards ------------------------------------------------------------------------------ */

#if HEXAD_TARGET_MINOR >= 1

typedef struct hexad_environment hexad_environment; /* the plugin's own type */

/* One response to a prompt. Samples of a group answer the same prompt and lie next to each other. Texts are UTF-8 of
 * `_size` bytes with a NUL behind them, never NULL. */
typedef struct hexad_sample {
  uint32_t struct_size;
  int32_t finish;           /* HEXAD_FINISH_STOP, or _LENGTH: cut off by the token limit */
  uint64_t group;
  const char* prompt;       /* as the model saw it, special tokens included */
  uint64_t prompt_size;
  const char* response;     /* without special tokens */
  uint64_t response_size;
  const char* ground_truth; /* the dataset's answer; "" if it has none */
  uint64_t ground_truth_size;
  const char* metadata;     /* the record's other fields: a JSON object */
  uint64_t metadata_size;
  const int64_t* tokens;    /* [prompt_tokens + response_tokens] */
  int64_t prompt_tokens;
  int64_t response_tokens;
#if HEXAD_TARGET_MINOR >= 3
  /* Of several turns `response` is the newest, and the tokens before it count as the prompt's. Since 1.3. */
  int64_t turn;             /* responses before this one */
  const char* state;        /* what this environment kept at the turn before; "" at the first */
  uint64_t state_size;
#endif
} hexad_sample;

#if HEXAD_TARGET_MINOR >= 3
/* What the environment says back to a response. Its texts are the plugin's until the next call on self. Since 1.3. */
typedef struct hexad_reply { /* frozen */
  const char* content; /* a message of the conversation, UTF-8; NULL: there is none, and the sample has ended */
  uint64_t content_size;
  const char* role;    /* of the message, for the chat template; NULL: "user" */
  const char* state;   /* kept with the sample for its next turn, UTF-8; NULL: nothing */
  uint64_t state_size;
} hexad_reply;
#endif

#if HEXAD_TARGET_MINOR >= 4
/* What was read out of a response. Its text is the plugin's until the next call on self. Since 1.4. */
typedef struct hexad_answer { /* frozen */
  const char* text; /* UTF-8; "": nothing was found; NULL: the environment tells no answers */
  uint64_t size;
} hexad_answer;
#endif

/* Host memory, preallocated and zeroed. */
typedef struct hexad_scores {
  uint32_t struct_size;
  uint32_t reserved;
  float* rewards;    /* [samples], finite */
  uint8_t* invalid;  /* [samples]; 1: it could not be scored. It leaves the training and is counted; never pass it off as 0 */
  float* components; /* [num_components, samples]: the parts of the reward, for the metrics */
#if HEXAD_TARGET_MINOR >= 3
  /* [samples]. A sample with a reply goes on with another response, as long as the run's turns and context allow; its
   * rewards add up. Nothing of a sample is kept elsewhere: turns may come in any order, or never. Since 1.3. */
  hexad_reply* replies;
#endif
#if HEXAD_TARGET_MINOR >= 4
  /* [samples]. Equal texts are one answer: what votes of several responses are counted by (cons@k). Since 1.4. */
  hexad_answer* answers;
#endif
} hexad_scores;

typedef struct hexad_environment_vtable {
  uint32_t struct_size;
  uint32_t num_components;       /* at most 64 */
  uint64_t caps;                 /* HEXAD_CAP_NONDETERMINISTIC (a judge that samples), or 0 */
  const char* const* components; /* names of the parts of the reward; static */
  /* `config` is the section env.<name>. The instance lives in the controller, which has no CUDA and no process group. */
  hexad_code (*create)(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_environment** out); /* L */
  void (*destroy)(hexad_environment* self);                                                                          /* L */
  /* A sample's scores depend on that sample alone, unless the environment is about groups: batches may be cut anywhere
   * between groups. An error ends the run; what one sample alone is to blame for is `invalid`. */
  hexad_code (*score)(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                      hexad_scores* out); /* C */
} hexad_environment_vtable;

#endif

/* ---- The plugin -------------------------------------------------------------------------------------------------- */

#define HEXAD_KIND_BACKEND 1
#define HEXAD_KIND_GENERATOR 2
#define HEXAD_KIND_LOSS 3
#define HEXAD_KIND_ENVIRONMENT 4 /* since 1.1 */
#define HEXAD_KIND_TOKENIZER 5   /* reserved */

/* Static storage for the life of the process. Exactly the vtable of `kind` is not NULL. */
typedef struct hexad_plugin_desc {
  uint32_t struct_size;
  uint32_t abi_minor;      /* what it was compiled against; information only */
  uint32_t min_host_minor; /* the lowest host that can run it; binding */
  int32_t kind;
  const char* name;     /* [a-z][a-z0-9_]{1,62}, unique within the kind */
  const char* version;  /* semver */
  const char* license;  /* SPDX */
  const char* build_id; /* free text, e.g. git describe */
  const hexad_backend_vtable* backend;
  const hexad_generator_vtable* generator;
  const hexad_loss_vtable* loss;
  const struct hexad_plugin_desc* next; /* another plugin of the same .so, or NULL */
#if HEXAD_TARGET_MINOR >= 1
  const hexad_environment_vtable* environment;
#endif
} hexad_plugin_desc;

/* The one exported symbol. Q. Pure: static data only; no CUDA, threads, environment, allocation. */
typedef const hexad_plugin_desc* (*hexad_plugin_query_fn)(const hexad_host* host);

#if defined(__GNUC__)
#define HEXAD_EXPORT __attribute__((visibility("default")))
#else
#define HEXAD_EXPORT
#endif
HEXAD_EXPORT const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* host);

/* ---- Conveniences for C: typed views and the descriptor ---------------------------------------------------------- */

#define HEXAD_DATA(type, t) ((type*)((char*)(t)->data + (t)->byte_offset))
#define HEXAD_F32(t) HEXAD_DATA(float, t)
#define HEXAD_F64(t) HEXAD_DATA(double, t)
#define HEXAD_I64(t) HEXAD_DATA(int64_t, t)
#define HEXAD_DTYPE_F32 {kDLFloat, 32, 1}
#define HEXAD_DTYPE_F64 {kDLFloat, 64, 1}
#define HEXAD_DTYPE_I64 {kDLInt, 64, 1}

/* A descriptor goes as far as its target minor does. */
#if HEXAD_TARGET_MINOR >= 1
#define HEXAD_DESC_LAST_ environment
#define HEXAD_DESC_TAIL_(environment_) , environment_
#else
#define HEXAD_DESC_LAST_ next
#define HEXAD_DESC_TAIL_(environment_)
#endif
#define HEXAD_DEFINE_PLUGIN_(kind_, name_, version_, license_, backend_, generator_, loss_, environment_)              \
  const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* host) {                                             \
    static const hexad_plugin_desc desc = {HEXAD_STRUCT_SIZE(hexad_plugin_desc, HEXAD_DESC_LAST_),                      \
                                           HEXAD_ABI_MINOR, HEXAD_TARGET_MINOR, kind_, name_, version_, license_, "",   \
                                           backend_, generator_, loss_, NULL HEXAD_DESC_TAIL_(environment_)};          \
    (void)host;                                                                                                        \
    return &desc;                                                                                                      \
  }
#define HEXAD_LOSS_PLUGIN(name, version, license, vtable) \
  HEXAD_DEFINE_PLUGIN_(HEXAD_KIND_LOSS, name, version, license, NULL, NULL, &vtable, NULL)
#define HEXAD_BACKEND_PLUGIN(name, version, license, vtable) \
  HEXAD_DEFINE_PLUGIN_(HEXAD_KIND_BACKEND, name, version, license, &vtable, NULL, NULL, NULL)
#define HEXAD_GENERATOR_PLUGIN(name, version, license, vtable) \
  HEXAD_DEFINE_PLUGIN_(HEXAD_KIND_GENERATOR, name, version, license, NULL, &vtable, NULL, NULL)
#if HEXAD_TARGET_MINOR >= 1
#define HEXAD_ENVIRONMENT_PLUGIN(name, version, license, vtable) \
  HEXAD_DEFINE_PLUGIN_(HEXAD_KIND_ENVIRONMENT, name, version, license, NULL, NULL, NULL, &vtable)
#endif

#ifdef __cplusplus
}
#endif

#endif  /* HEXAD_ABI_H_ */
