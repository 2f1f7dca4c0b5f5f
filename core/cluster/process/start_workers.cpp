#include "core/cluster/process/start_workers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::cluster {
namespace {

bool port_is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool free = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

// A port of [low, high), begun at a place that differs between runs so that two that start together rarely meet.
int rendezvous_port(int64_t low, int64_t high) {
  const int64_t count = high - low;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t port = low + (::getpid() + i) % count;
    if (port_is_free(static_cast<int>(port))) return static_cast<int>(port);
  }
  fail(ErrorKind::worker,
       "no free port in [{}, {}): widen cluster.master_port_range_low and cluster.master_port_range_high", low, high);
}

void collect_locations(const yaml::Node& node, const std::string& path, std::map<std::string, std::string>& out) {
  const std::string place = node.location().text();
  if (!path.empty() && !place.empty()) out[path] = place;
  if (!node.is_map()) return;
  for (const auto& [key, child] : node.entries()) collect_locations(child, path.empty() ? key : path + "." + key, out);
}

// Whether the generator must return the experts that its tokens were routed to.
bool replays_rollout_routes(const yaml::Node& root) {
  const std::string at = "policy.router_replay.";
  if (!root.has(at + "enabled") || !root.at(at + "enabled").as_bool()) return false;
  return !root.has(at + "source") || root.as_string(at + "source") == "rollout";
}

// The section that the loss reads. A plugin's own keys stand in loss_fn, whatever holds those of NeMo-RL.
Json loss_section(const yaml::Node& root, const config::RunConfig& run) {
  const yaml::Node* found = root.find(run.loss_fn.section);
  Json section = found && found->is_map() ? found->to_json() : Json::object();
  if (!run.loss_fn.plugin_config.is_null()) section["plugin_config"] = run.loss_fn.plugin_config;
  return section;
}

// A reward model's head is the backend's to make, whether the configuration names it or only the algorithm.
Json policy_section(const yaml::Node& root, const config::RunConfig& run, const std::string& model_dir) {
  Json policy = root.at("policy").to_json();
  policy["model_name"] = model_dir;
  if (run.algorithm == config::Algorithm::rm) policy["reward_model_cfg"]["enabled"] = true;
  return policy;
}

// Of check_facts().
using Texts = std::vector<std::string>;

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const Texts& values) { return joined(values); }

// The same outputs in any order.
bool agree(const Texts& a, const Texts& b) { return std::ranges::is_permutation(a, b); }
bool agree(int64_t a, int64_t b) { return a == b; }

template <typename T>
void compare(const protocol::BackendInfo& backend, int rank, const char* field, const T& got, const char* fact,
             const std::optional<T>& wanted) {
  if (!wanted || agree(got, *wanted)) return;
  fail(ErrorKind::plugin,
       "{} on rank {}: describe() says {} {}, and {} after the fact {} of its manifest: the plugin's author has to "
       "mend one of the two",
       backend.name, rank, field, text_of(got), text_of(*wanted), fact);
}

}  // namespace

protocol::Start start_of_all(const yaml::Node& root, const config::RunConfig& run, const Roles& roles,
                             const std::string& model_dir, const std::string& tokenizer_dir) {
  const config::GenerationConfig& sampling = run.policy.generation;
  protocol::Start start;
  start.device = run.cluster.device;
  start.deterministic = run.policy.deterministic;
  start.timeout_ms = static_cast<int64_t>(run.cluster.worker_timeout_s * 1000);
  if (const yaml::Node* plugins = root.find("plugins"); plugins && plugins->is_map())
    start.plugins = plugins->to_json();
  start.replay_routes = replays_rollout_routes(root);
  start.policy = policy_section(root, run, model_dir);
  start.generation = start.policy.value("generation", Json::object());
  start.generation["model_name"] = model_dir;
  start.generation["precision"] = run.policy.precision;
  start.generation["batch_invariant"] = run.policy.batch_invariant;
  start.generation["weights_follow"] = !roles.backend.empty();  // a generator need not read its own first
  start.generation["max_total_sequence_length"] = run.policy.max_total_sequence_length;
  start.loss_section = run.loss_fn.section;
  start.algorithm = name_of(run.algorithm);
  start.loss_fn = loss_section(root, run);
  start.tokenizer = tokenizer_dir;
  // Training log-probs pass the same temperature and filters as the sampled tokens did; examples pass none.
  if (run.algorithm == config::Algorithm::grpo)
    start.transform = {sampling.temperature, sampling.top_k.value_or(0), sampling.top_p};
  collect_locations(root, "", start.locations);
  return start;
}

std::vector<protocol::Start::Reply> start_workers(WorkerGroup& workers, const yaml::Node& root,
                                                  const config::RunConfig& run, const Roles& roles,
                                                  const std::string& model_dir, const std::string& tokenizer_dir) {
  return start_workers(workers, colocated(workers.size()), root, run, roles, model_dir, tokenizer_dir);
}

std::vector<protocol::Start::Reply> start_workers(WorkerGroup& workers, const Placement& placement,
                                                  const yaml::Node& root, const config::RunConfig& run,
                                                  const Roles& roles, const std::string& model_dir,
                                                  const std::string& tokenizer_dir) {
  protocol::Start of_all = start_of_all(root, run, roles, model_dir, tokenizer_dir);
  of_all.world_size = workers.size();
  of_all.local_world = workers.local_world();
  of_all.master_address = workers.address();
  if (workers.size() > 1)
    of_all.master_port = rendezvous_port(run.cluster.master_port_range_low, run.cluster.master_port_range_high);

  const auto started = workers.call<protocol::Start>(workers.all(), [&](int rank) {
    const bool trains = placement.trainers.contains(rank), generates = placement.generators.contains(rank);
    protocol::Start start = of_all;
    start.block = placement.block_of(rank);
    // Replicas are worlds of their own, and share a machine, a log folder and a list of servers all the same.
    if (generates) {
      start.generation["replica_index"] = placement.replica_of(rank);
      start.generation["replica_count"] = placement.replicas();
    }
    start.roles = {trains ? roles.backend : "", trains ? roles.loss : "", generates ? roles.generator : ""};
    return start;
  });
  if (!roles.backend.empty()) check_facts(started, placement.trainers, run.facts);
  return started;
}

void check_facts(const std::vector<protocol::Start::Reply>& started, const RankRange& trainers,
                 const config::RunFacts& facts) {
  std::optional<int64_t> copies;
  if (facts.copy_ranks && *facts.copy_ranks > 0) copies = trainers.count / *facts.copy_ranks;
  for (int rank = trainers.first; rank < trainers.end(); ++rank) {
    const protocol::BackendInfo& backend = started.at(rank).backend.value();
    const auto check = [&](const char* field, const auto& got, const char* fact, const auto& wanted) {
      compare(backend, rank, field, got, fact, wanted);
    };
    check("dp_size", backend.dp_size, "copy_ranks", copies);
    check("sequence_multiple", backend.sequence_multiple, "sequence_multiple", facts.sequence_multiple);
    check("micro_batch_multiple", backend.micro_batch_multiple, "micro_batch_multiple", facts.micro_batch_multiple);
    check("outputs", backend.outputs, "outputs", facts.outputs);
  }
}

}  // namespace hexad::cluster
