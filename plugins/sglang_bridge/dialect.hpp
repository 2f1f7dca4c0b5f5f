// What SGLang's servers are asked, and how.
#pragma once
#include <string>

#include "plugins/server_bridge/dialect.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::sglang {

using bridge::Answer;
using bridge::Doubt;
using bridge::Facts;
using bridge::Post;

struct DialectSettings {
  std::string model_type;              // of config.json; "": not known
  int64_t max_length = 0;              // prompt and response, tokens; 0: not known
  std::string pause_mode = "retract";  // of /pause_generation
  int64_t stream_interval = 32;        // tokens an event
  bool wants_routes = false;           // routed_experts are asked for
  // Where servers meet this process for gloo and NCCL, an IPv4 address of this host, and how long they are waited for.
  std::string refit_address = "127.0.0.1";
  bridge::Seconds patience{300}, goodbye{5};
};

class Dialect : public bridge::Dialect {
 public:
  explicit Dialect(DialectSettings settings) : settings_(std::move(settings)) {}

  bridge::Names names() const override { return {"SGLang", "sglang_cfg", "sglang"}; }
  void launch(server::Command& command, const bridge::Launch& launch) const override;
  std::span<const bridge::Probe> probes() const override;
  std::string mismatch(const Facts& facts) const override;
  // /health draws a token, which a paused server does not.
  const char* health() const override { return "/model_info"; }
  // Somebody else may answer at its port by now.
  bool is_well(const Answer& answer) const override;
  std::optional<Post> name_weights(const Facts& facts, int64_t version) const override;

  std::string body_of(const Facts& facts, const bridge::Ask& ask) const override;
  bridge::Chunk parse(const Facts& facts, std::string_view data, std::span<const int32_t> known) const override;
  std::optional<Doubt> doubt(const Facts& facts, const bridge::Request& request) const override;
  std::optional<Post> abort(const std::string& name) const override;

  Post pause() const override;
  Post resume() const override { return {"/continue_generation"}; }
  Post load(const std::string& dir, int64_t version) const override;
  Post flush() const override { return {"/flush_cache"}; }
  bool flushed(const Facts& facts, const Answer& answer) const override;
  std::vector<Post> sleep(int32_t level) const override;
  std::vector<Post> wake(int32_t level) const override;

  Post begin_update() const override { return {"/begin_weight_update"}; }
  Post end_update() const override { return {"/end_weight_update"}; }
  std::unique_ptr<bridge::Channel> channel(const std::string& transport, bridge::Control& control) const override;
  // It offers nothing by itself, so that without the key weights go over disk; what it is asked for it takes.
  bool takes(const Facts&, const std::string& transport) const override { return !transport.empty(); }
  std::string wants_updates() const override;
  std::string wants_transport(const std::string& transport) const override;

 private:
  bool serves_another_model(const Facts& facts) const;

  DialectSettings settings_;
};

}  // namespace hexad::sglang
