// Pieces that the scripts share.
#pragma once
#include <string>
#include <vector>

#include "core/plugin/kind/instance_base.hpp"
#include "tests/abi/scripts.hpp"

namespace abi_test {

// Everything that a plugin can learn of a call, and the metrics that it reports.
struct Recorder {
  Recorder() {
    context.step = 812;
    context.flags = HEXAD_CALL_DETERMINISTIC;
    context.metric = [this](const hexad::plugin::Metric& m) {
      metrics.push_back({m.name, m.value, m.weight, m.reduce});
    };
    context.detokenize = [](std::span<const int32_t> ids) { return std::string(ids.size(), 'x'); };
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  hexad::plugin::CallContext context;
  Json metrics = Json::array();
};

// {code, text} of a call that the plugin refuses; of the text, what the plugin said and not what the host put before
// it.
template <typename Run>
Json refusal(Run&& run) {
  try {
    run();
  } catch (const hexad::plugin::PluginError& error) {
    const std::string text = error.what();
    return {{"code", error.code()}, {"text", text.substr(text.rfind(": ") + 2)}};
  }
  return "(not refused)";
}

// A contiguous array in host memory as a tensor.
template <typename T>
struct Array {
  explicit Array(std::vector<T> values) : data(std::move(values)), size(static_cast<int64_t>(data.size())) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  std::vector<T> data;
  int64_t size;
  DLTensor tensor{data.data(),
                  {kDLCPU, 0},
                  1,
                  {static_cast<uint8_t>(std::is_floating_point_v<T> ? kDLFloat : kDLInt), 8 * sizeof(T), 1},
                  &size,
                  nullptr,
                  0};
};

}  // namespace abi_test
