// What OpenAI-compatible servers are asked, and how. They keep the model that they have.
#pragma once
#include <string>
#include <vector>

#include "plugins/openai_bridge/protocol/request_body.hpp"
#include "plugins/openai_bridge/text_tokens.hpp"
#include "plugins/server_bridge/dialect.hpp"

namespace hexad::openai {

using bridge::Answer;
using bridge::Doubt;
using bridge::Facts;
using bridge::Post;

struct DialectSettings {
  Fixed fixed;
  std::string prompt = "auto";  // token_ids or text: the forms that are tried
  std::string tokenizer;        // folder, of `text`
  TextTokens text;
  int64_t max_length = 0;  // prompt and response, tokens; 0: not known
  int64_t vocabulary = 0;  // of the model; 0: not known
};

class Dialect : public bridge::Dialect {
 public:
  explicit Dialect(DialectSettings settings);

  bridge::Names names() const override { return {"OpenAI", "openai_cfg", "openai"}; }
  // Names the model where the command has "{model}".
  void launch(server::Command& command, const bridge::Launch& launch) const override;
  std::span<const bridge::Probe> probes() const override { return probes_; }
  std::string mismatch(const Facts& facts) const override;
  const char* health() const override;
  // It need not have a list of its models.
  bool is_well(const Answer& answer) const override { return answer.result.complete && answer.result.status < 500; }

  bool streams() const override { return false; }
  std::string body_of(const Facts& facts, const bridge::Ask& ask) const override;
  bridge::Chunk parse(const Facts&, std::string_view, std::span<const int32_t>) const override { return {}; }
  bridge::Chunk read_answer(const Facts& facts, const bridge::Ask& ask, std::string_view body) const override;
  std::optional<Doubt> doubt(const Facts& facts, const bridge::Request& request) const override;
  std::string mend(long status) const override;

  // Of weights, which none of them takes (Facts::updates): never asked.
  Post pause() const override { return {}; }
  Post resume() const override { return {}; }
  Post load(const std::string&, int64_t) const override { return {}; }
  Post flush() const override { return {}; }
  bool flushed(const Facts&, const Answer&) const override { return true; }
  std::vector<Post> sleep(int32_t) const override { return {}; }
  std::vector<Post> wake(int32_t) const override { return {}; }
  Post begin_update() const override { return {}; }
  Post end_update() const override { return {}; }
  std::unique_ptr<bridge::Channel> channel(const std::string&, bridge::Control&) const override;
  std::string wants_updates() const override { return "takes no weights"; }
  std::string wants_transport(const std::string&) const override { return ""; }

 private:
  void check_sample(const Facts& facts) const;

  DialectSettings settings_;
  const TextTokens& text_ = settings_.text;
  bridge::Request first_;            // of the probes
  std::vector<std::string> bodies_;  // that probes_ points to
  std::vector<bridge::Probe> probes_;
};

}  // namespace hexad::openai
