#include "modeling/layout/pipeline_event.hpp"

#include <fmt/format.h>

namespace hexad::modeling::layout {
namespace {

std::string name_of(const PipelineUnit& unit) {
  return fmt::format("(chunk {}, microbatch {})", unit.chunk, unit.microbatch);
}

std::string describe_exchange(const PipelineEvent& event) {
  std::string text = "exchange";
  const auto add = [&](const char* what, const std::optional<PipelineUnit>& unit) {
    if (unit) text += fmt::format(", {} {}", what, name_of(*unit));
  };
  add("sending activations of", event.send_next);
  add("sending gradients of", event.send_prev);
  add("receiving activations for", event.recv_prev);
  add("receiving gradients for", event.recv_next);
  return text;
}

}  // namespace

std::string describe(const PipelineEvent& event) {
  using enum PipelineEvent::Kind;
  switch (event.kind) {
    case forward: return "forward of " + name_of(event.unit);
    case backward: return "backward of " + name_of(event.unit);
    case exchange: return describe_exchange(event);
    case hold_gradients: return "holding gradients";
    case release_gradients: return "releasing gradients";
    case gather_parameters: return fmt::format("gathering parameters of chunk {}", event.unit.chunk);
    case reduce_gradients: return fmt::format("reducing gradients of chunk {}", event.unit.chunk);
    case finalize: return "finishing gradients";
  }
  return {};
}

}  // namespace hexad::modeling::layout
