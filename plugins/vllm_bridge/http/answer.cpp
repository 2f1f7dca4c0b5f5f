#include "plugins/vllm_bridge/http/answer.hpp"

#include <fmt/format.h>

#include "plugins/vllm_bridge/protocol/generation_api.hpp"

namespace hexad::vllm {

std::string Answer::trouble() const {
  if (!result.complete) return result.error;
  return fmt::format("status {}: {}", result.status, error_text(body));
}

uint64_t ask(Transfers& transfers, HttpRequest request, std::function<void(const Answer&)> then) {
  auto answer = std::make_shared<Answer>();
  return transfers.start(std::move(request), {[answer](long, std::string_view bytes) { answer->body += bytes; },
                                              [answer, then = std::move(then)](const HttpResult& result) {
                                                answer->result = result;
                                                then(*answer);
                                              }});
}

}  // namespace hexad::vllm
