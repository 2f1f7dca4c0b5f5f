#include "plugins/sglang_bridge/dialect.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "plugins/sglang_bridge/protocol/event.hpp"
#include "plugins/sglang_bridge/protocol/probes.hpp"
#include "plugins/sglang_bridge/protocol/request_body.hpp"
#include "plugins/sglang_bridge/refit/ipc_channel.hpp"
#include "plugins/sglang_bridge/refit/update_groups.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

// The key is in a file of ours: every user of the machine sees command lines.
void write_config(const std::string& path, const std::string& api_key) {
  const std::string text = "api-key: \"" + api_key + "\"\n";
  ::unlink(path.c_str());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool whole = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!whole) throw std::system_error(error, std::generic_category(), "writing " + path);
}

Json tags_of(int32_t level) { return level == 2 ? Json::array({"kv_cache", "weights"}) : Json::array({"kv_cache"}); }

}  // namespace

void Dialect::launch(server::Command& command, const bridge::Launch& launch) const {
  const std::string config = fmt::format("{}/server_{}.yaml", command.scratch, launch.port);
  write_config(config, launch.api_key);
  command.arguments.insert(command.arguments.end(), {"--model-path", launch.model_dir, "--host", "127.0.0.1", "--port",
                                                     std::to_string(launch.port), "--config", config});
}

std::span<const bridge::Probe> Dialect::probes() const { return sglang::probes(); }

bool Dialect::serves_another_model(const Facts& facts) const {
  return !facts.model_type.empty() && !settings_.model_type.empty() && facts.model_type != settings_.model_type;
}

bool Dialect::is_well(const Answer& answer) const {
  Facts facts;
  const bool answers = answer.ok() && probes().front().read(answer, facts).kind == bridge::Verdict::next;
  return answer.result.status == 429 || (answers && !serves_another_model(facts));
}

std::string Dialect::mismatch(const Facts& facts) const {
  if (serves_another_model(facts)) {
    return fmt::format("it serves another model: its model_type is {}, that of policy.model_name is {}",
                       facts.model_type, settings_.model_type);
  }
  if (facts.max_length > 0 && facts.max_length < settings_.max_length) {
    return fmt::format(
        "it takes {} tokens, and policy.max_total_sequence_length is {}: start it with --context-length "
        "{}",
        facts.max_length, settings_.max_length, settings_.max_length);
  }
  if (settings_.wants_routes && !facts.routes) {
    return "it does not say where it sends tokens, and policy.router_replay replays that: start it with "
           "--enable-return-routed-experts, or set policy.router_replay.source to logprobs";
  }
  return "";
}

std::optional<Post> Dialect::name_weights(const Facts& facts, int64_t version) const {
  const std::string name = std::to_string(version);
  if (facts.weight_version == name) return std::nullopt;
  return Post{"/update_weight_version", Json{{"new_version", name}, {"abort_all_requests", false}}.dump()};
}

std::string Dialect::body_of(const Facts& facts, const bridge::Ask& ask) const {
  return request_body(ask, takes_stream_interval(facts.version) ? settings_.stream_interval : 1);
}

bridge::Chunk Dialect::parse(const Facts&, std::string_view data, std::span<const int32_t> known) const {
  return read_event(data, known);
}

std::optional<Doubt> Dialect::doubt(const Facts&, const bridge::Request& request) const {
  // top_p and top_k the engine takes into account (the fact filtered_logprobs).
  if (request.temperature == 0 || request.min_p <= 0) return std::nullopt;
  return Doubt{.refuses = false,
               .text = " gives log-probs before min_p: with it set they are not of the distribution drawn from"};
}

std::optional<Post> Dialect::abort(const std::string& name) const {
  return Post{"/abort_request", Json{{"rid", name}}.dump()};
}

Post Dialect::pause() const { return {"/pause_generation", Json{{"mode", settings_.pause_mode}}.dump()}; }

// Without flush_cache: a server that cannot flush, as requests keep their blocks, would end. /flush_cache is asked for
// it. With load_format: one that was started with `--load-format dummy` would look for no weights.
Post Dialect::load(const std::string& dir, int64_t version) const {
  return {"/update_weights_from_disk", Json{{"model_path", dir},
                                            {"load_format", "auto"},
                                            {"flush_cache", false},
                                            {"weight_version", std::to_string(version)}}
                                           .dump()};
}

// Paused in place, requests hold their blocks and it is refused (400): new ones have another salt.
bool Dialect::flushed(const Facts& facts, const Answer& answer) const {
  return answer.ok() || (facts.salts && answer.result.complete && answer.result.status == 400);
}

// A server that is to give memory back while anything runs ends; pausing with abort waits for the last.
std::vector<Post> Dialect::sleep(int32_t level) const {
  return {{"/pause_generation", R"({"mode":"abort"})"},
          {"/release_memory_occupation", Json{{"tags", tags_of(level)}}.dump()}};
}

std::vector<Post> Dialect::wake(int32_t level) const {
  return {{"/resume_memory_occupation", Json{{"tags", tags_of(level)}}.dump()}, resume()};
}

std::unique_ptr<bridge::Channel> Dialect::channel(const std::string& transport, bridge::Control& control) const {
  if (transport == "ipc") return std::make_unique<IpcChannel>(control, settings_.patience);
  const auto backend = transport == "nccl" ? UpdateGroups::Backend::nccl : UpdateGroups::Backend::gloo;
  return std::make_unique<UpdateGroups>(backend, control, settings_.patience, settings_.goodbye,
                                        settings_.refit_address);
}

std::string Dialect::wants_updates() const {
  return "does not take /continue_generation, without which no weights can be loaded. Use SGLang 0.5.23 or newer";
}

std::string Dialect::wants_transport(const std::string&) const { return "Set it to disk, gloo, nccl or ipc"; }

}  // namespace hexad::sglang
