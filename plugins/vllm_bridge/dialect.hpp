// What vLLM's servers are asked, and how.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "plugins/server_bridge/dialect.hpp"
#include "plugins/server_bridge/settings.hpp"
#include "plugins/vllm_bridge/fp8/recipe.hpp"

namespace hexad::vllm {

using bridge::Answer;
using bridge::Doubt;
using bridge::Facts;
using bridge::Post;
using bridge::Verdict;

class Dialect : public bridge::Dialect {
 public:
  // `patience` and `refit_address`: of a channel (refit/nccl/channel.hpp).
  // `fp8`: the form of the weights, if it is not the backend's.
  Dialect(bridge::Seconds patience, std::string refit_address, std::optional<fp8::Recipe> fp8 = std::nullopt)
      : patience_(patience), refit_address_(std::move(refit_address)), fp8_(std::move(fp8)) {}

  bridge::Names names() const override { return {"vLLM", "vllm_cfg", "vllm"}; }
  void launch(server::Command& command, const bridge::Launch& launch) const override;
  std::span<const bridge::Probe> probes() const override;
  std::string mismatch(const Facts& facts) const override;

  std::string body_of(const Facts& facts, const bridge::Ask& ask) const override;
  bridge::Chunk parse(const Facts& facts, std::string_view data, std::span<const int32_t> known) const override;
  std::optional<Doubt> doubt(const Facts& facts, const bridge::Request& request) const override;

  Post pause() const override { return {"/pause?mode=keep&clear_cache=false"}; }
  Post resume() const override { return {"/resume"}; }
  Post load(const std::string& dir, int64_t version) const override;
  Post flush() const override { return {"/reset_prefix_cache"}; }
  bool flushed(const Facts& facts, const Answer& answer) const override;
  std::vector<Post> sleep(int32_t level) const override { return {{"/sleep?level=" + std::to_string(level)}}; }
  std::vector<Post> wake(int32_t) const override { return {{"/wake_up"}}; }

  const char* lacks() const override { return fp8_ ? "weights in FP8" : nullptr; }
  std::unique_ptr<bridge::FormedBucket> formed(const sdk::Call& call, const hexad_weight_list& bucket) const override;
  Post begin_update() const override { return {"/start_weight_update"}; }
  Post end_update() const override { return {"/finish_weight_update"}; }
  std::unique_ptr<bridge::Channel> channel(const std::string& transport, bridge::Control& control) const override;
  std::string wants_updates() const override;
  std::string wants_transport(const std::string& transport) const override;

 private:
  bridge::Seconds patience_;
  std::string refit_address_;
  std::optional<fp8::Recipe> fp8_;
};

}  // namespace hexad::vllm
