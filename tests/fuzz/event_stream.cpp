// The bytes of a server's stream, behind one that says into how many of them they are cut: what the bridges to servers
// read of them, and of the same bytes as the body of an error.
#include <cstdlib>
#include <string>
#include <vector>

#include "lib/http/client/error_text.hpp"
#include "lib/http/client/event_stream.hpp"
#include "plugins/openai_bridge/protocol/answer.hpp"
#include "plugins/sglang_bridge/protocol/event.hpp"
#include "plugins/vllm_bridge/protocol/generation_api.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using namespace hexad::http::client;
using namespace hexad::vllm;

namespace {

std::vector<std::string> events_in(std::string_view bytes, size_t step) {
  EventStream stream;
  std::vector<std::string> events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size())))
    stream.feed(bytes.substr(0, step), [&](std::string_view data) { return events.emplace_back(data), true; });
  return events;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const std::vector<std::string> events = events_in(bytes, 1 + data[0] % 64);
  if (events != events_in(bytes, bytes.size() + 1)) std::abort();
  for (const std::string& event : events) {
    for (const GenerationApi api : {GenerationApi::tokens, GenerationApi::completions}) {
      try {
        const Chunk chunk = parse_chunk(api, event);
        if (chunk.tokens.size() != chunk.logprobs.size()) std::abort();
      } catch (const std::exception&) {  // the fleet makes a fault of the server of it
      }
    }
    try {
      const Chunk chunk = sglang::read_event(event, {});
      if (chunk.tokens.size() != chunk.logprobs.size()) std::abort();
    } catch (const std::exception&) {
    }
  }
  static const openai::TextTokens no_tokenizer("/nowhere");
  openai::tells_by(bytes);
  for (const bool logprobs : {false, true}) {
    try {
      const openai::Asked asked{.prompt = 1, .most = 8, .logprobs = logprobs, .vocabulary = 97};
      const Chunk chunk = openai::read_answer(bytes, asked, no_tokenizer);
      if (chunk.tokens.size() != chunk.logprobs.size()) std::abort();
    } catch (const std::runtime_error&) {
    }
  }
  error_text(bytes);
  return 0;
}
