// What controller and workers say to each other: a struct for each command, its Reply and each event. A field's name is
// its key in the message's header; a batch lies there under its field's name, its columns among the raw tensor frames.
//
// A new command has its struct here, its fields listed in protocol.cpp, and a handler in cluster/worker that engine.cpp
// names there. What another build would misread raises kVersion.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/message/message.hpp"
#include "core/cluster/placement.hpp"
#include "core/cluster/refit/plan.hpp"
#include "core/plugin/kind/backend_plugin.hpp"
#include "core/plugin/metric_sum.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster::protocol {

constexpr int64_t kVersion = 4;

// "train" of Train: as the message of this command or event is named. A Reply has no name.
template <typename T>
const char* name_of();
// The message of a struct below.
template <typename T>
Message to_message(const T& value);
// The struct of a message. `name`: of the command that a Reply answers. Throws Error(worker), which names command,
// field, what is there and what was wanted.
template <typename T>
T from_message(const Message& message, const std::string& name = "");

// Whether a run that ends need not wait for this command: Cancel ends it.
template <typename Command>
constexpr bool kMayBeCancelled = requires {
  Command::kMayBeCancelled;
};

struct Nothing {};  // a command that its name says in full; a reply that says that the command has been carried out

// -- Events: what a worker sends of its own accord ------------------------------------------------------------------

// The first one.
struct Hello {
  std::optional<int64_t> version;  // kVersion; nothing: its build is older than version 1
  std::string host;
  int64_t pid = 0;
  std::optional<std::string> reached = {};  // the address by which a launcher's rank has reached the first process
};
// Throws Error(worker) unless the worker of this rank speaks kVersion.
void check_version(const Hello& hello, int rank);

// Every second, whatever the worker does.
struct Heartbeat {
  std::optional<std::string> inside;  // plugin::longest_call()
};

// How far a command has come.
struct Progress {
  std::string what;             // "generation", "policy_training"
  int64_t done = 0, total = 0;  // requests, micro-batches
  int64_t tokens = 0;           // generated so far, or trained on
};

// Requests of `submit` that have ended. Element i of each list is one request's.
struct Completions {
  std::vector<uint64_t> ids;
  std::vector<std::string> errors;   // empty: it ended well
  plugin::MetricSum metrics;         // reported by the generator since the last event
  data::Batch completions;           // as of to_batch() in generation_requests.hpp
  std::vector<data::Batch> columns;  // of one sample each: token columns over prompt and completion
};

// What answers a command that failed.
struct Failure {
  std::string error;
  ErrorKind error_kind = ErrorKind::worker;
  bool lost_peer = false;  // this rank waited in vain for another, which can say more
};
bool is_failure(const Message& message);

// What ended requests between commands. Every later command is answered with it.
struct Failed : Failure {};

// -- Start and end --------------------------------------------------------------------------------------------------

// Plugins by name; empty: the worker has none of this kind.
struct Roles {
  std::string backend, loss, generator;
};

struct PluginLine {
  std::string name, version;
  std::string path;    // of the library
  std::string sha256;  // of its bytes, in hexadecimal
};
struct BackendInfo : PluginLine {  // hexad_backend_info
  int64_t num_parameters = 0;
  int64_t dp_rank = 0, dp_size = 1;
  int64_t sequence_multiple = 1;     // tokens
  int64_t micro_batch_multiple = 1;  // micro-batches of a train call
  bool counts_loss = true;           // else another rank of this dp_rank reports the loss
  std::vector<std::string> inputs, outputs;
};
struct LossInfo : PluginLine {
  std::vector<std::string> inputs;          // columns of the batch
  std::vector<std::string> differentiates;  // outputs of the backend
};
struct GeneratorInfo : PluginLine {  // hexad_generator_info
  int64_t max_sequences = 0;
  int64_t max_model_len = 0, kv_capacity = 0;  // tokens
};

struct Start {
  struct Reply {
    std::optional<BackendInfo> backend;
    std::optional<LossInfo> loss;
    std::optional<GeneratorInfo> generator;
    std::string device;  // "cpu", "cuda:0"
    std::string card;    // "NVIDIA H100 80GB HBM3"; "": of a CPU
  };
  std::string device;  // cluster.device
  bool deterministic = false;
  int world_size = 1, local_world = 1;  // ranks of the run, and on this host
  RankRange block{0, 1};                // those that share this rank's plugins' world
  std::string master_address = "127.0.0.1";
  int master_port = 0;     // where the ranks meet; 0: there is one
  int64_t timeout_ms = 0;  // of one command
  Roles roles;
  plugin::LogitTransform transform;  // of log-probs; those before filters pass the temperature alone
  bool replay_routes = false;        // the generator gives routed_experts, for trainers elsewhere
  std::string tokenizer;             // a directory; empty: plugins get no text
  std::string loss_section;          // what the configuration calls loss_fn: "loss_fn", "dpo"
  std::string algorithm;             // "grpo", "sft" ...: whose batches the loss gets; empty: unknown
  // Sections of the configuration that pass unopened: of the loader of plugins, the backend, the generator, the loss.
  Json plugins = Json::object(), policy = Json::object(), generation = Json::object(), loss_fn = Json::object();
  std::map<std::string, std::string> locations;  // a key's path -> where its value was written: "config.yaml:41:3"
};

struct Shutdown {
  using Reply = Nothing;
};

// Sets the flag that plugins look at in long calls, until the next command begins; has no reply.
struct Cancel {
  using Reply = Nothing;
};

// Begins a trace of what the worker does, or ends it and writes it.
struct Trace {
  using Reply = Nothing;
  std::optional<std::string> path;  // nothing: begin. trace.json becomes trace-rank3.json
};

// -- Training -------------------------------------------------------------------------------------------------------

struct MicroBatch {
  std::vector<int64_t> rows;  // of the command's batch
  int64_t padded_length = 0;  // tokens of every sequence; 0: packed
  bool dummy = false;         // nothing to compute, but collectives to take part in
};

// Log-probs and other outputs of the backend, without gradients.
struct Forward {
  struct Reply {
    data::Batch outputs;  // of the samples that were sent; a column f32 [T] for each name
  };
  data::Batch batch;  // the columns that the backend wants
  std::vector<MicroBatch> micro_batches;
  std::vector<std::string> outputs;
  int32_t which = 0;    // weights: HEXAD_WEIGHTS_*
  bool filters = true;  // log-probs are after sampling's top_k and top_p
};

// A batch and what its loss divides by: counted over all ranks, and over all micro-batches up to the optimizer's step.
struct LossBatch {
  data::Batch batch;  // the columns that backend and loss want
  std::vector<MicroBatch> micro_batches;
  double global_valid_tokens = 0, global_valid_sequences = 0;
};
struct LossReply {
  plugin::MetricSum metrics;  // "loss", and what the loss and the backend report
};
// Adds up gradients.
struct Train : LossBatch {
  using Reply = LossReply;
};
// The same loss, and nothing learnt.
struct Evaluate : LossBatch {
  using Reply = LossReply;
};

// The optimizer's step.
struct Step {
  struct Reply {
    plugin::MetricSum metrics;
    std::optional<double> grad_norm;  // before clipping; nothing: not finite
    bool skipped = false;             // nothing was updated
  };
  double lr = 0;
  std::optional<double> weight_decay;  // nothing: as the backend has it
  double max_grad_norm = 0;            // 0: gradients are not clipped
  bool discard = false;                // the loss was not finite: forget the gradients
};

// -- Generation -----------------------------------------------------------------------------------------------------

// How tokens are chosen.
struct Sampling {
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;  // 0: off
  bool greedy = false, ignore_eos = false;
  std::vector<int64_t> stop_token_ids;
  std::vector<std::string> stop_strings;
};

struct Prompts {
  data::Batch prompts;  // as make_requests() in generation_requests.hpp wants them
  Sampling sampling;
  bool reports = true;  // false: another rank of the replica reports progress, completions and metrics
};
// Waits until all have ended.
struct Generate : Prompts {
  static constexpr bool kMayBeCancelled = true;
  struct Reply {
    std::optional<data::Batch> completions;  // as of to_batch() in generation_requests.hpp; in the order of the prompts
    std::optional<data::Batch> columns;      // token columns over prompt and completion
    plugin::MetricSum metrics;
  };
};
// Leaves them running: they come back in events.
struct Submit : Prompts {
  using Reply = Nothing;
};
struct CancelRequests {
  using Reply = Nothing;
  std::vector<uint64_t> ids;
};

struct Sleep {
  using Reply = Nothing;
  int32_t level = 1;  // 1: the KV cache's memory goes; 2: that of the weights too
};
struct Wake {
  using Reply = Nothing;
};

// -- Weights --------------------------------------------------------------------------------------------------------

// Brings the backend's weights into the generator: within a worker, or by the plan of RefitConnect.
struct Refit {
  struct Reply {
    double seconds = 0;
  };
  int64_t version = 0;              // that completions carry from now on
  bool recompute_kv_cache = false;  // of requests that run
};
struct RefitLayout {
  struct Reply {
    Layout held, needed;  // by the backend, by the generator
    int64_t form = 0;     // HEXAD_FORM_* that the generator takes
  };
};
struct RefitConnect {
  using Reply = Nothing;
  std::vector<int32_t> ranks;  // of the process group that exchanges weights
  std::string name;            // of that group
  RefitPart part;
};

// Checksums of the weights that the backend hands out; the generator's are metrics named weight_sum/NAME.
struct WeightSums {
  struct Sum {
    int64_t sum = 0, bytes = 0;
    bool operator==(const Sum&) const = default;
  };
  struct Reply {
    std::map<std::string, Sum> sums;
    plugin::MetricSum metrics;
  };
};

// Keeps a copy of the current weights.
struct Keep {
  using Reply = Nothing;
  int32_t which = 0;  // HEXAD_WEIGHTS_*: where the copy goes
};
// The files are whole when it is answered, and then go to the disk.
struct Save {
  struct Reply {
    std::optional<std::string> failure;  // why they cannot be written; the worker is as it was
  };
  std::string weights, optimizer;  // directories; empty: not these
};
// Whether what was saved is on the disk.
struct Saved {
  struct Reply {
    bool done = true;
    std::optional<std::string> failure;
  };
  int64_t patience_ms = 0;  // how long to wait for it
};
struct Load {
  using Reply = Nothing;
  std::string weights, optimizer;  // directories; empty: not these
  int32_t which = 0;               // HEXAD_WEIGHTS_*
};

}  // namespace hexad::cluster::protocol
