// A message of the control plane as its frames: the header up to the first newline, then each tensor's bytes behind one
// that counts them. What is read from it is what controller and workers read.
#include "core/cluster/generation_requests.hpp"
#include "core/cluster/message/message.hpp"
#include "core/cluster/refit/part.hpp"
#include "core/plugin/metric_sum.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using cluster::Json;
using cluster::Message;

namespace {

cluster::Frame frame(std::string_view bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  return {owner, owner->data(), owner->size()};
}

std::vector<cluster::Frame> frames_in(std::string_view bytes) {
  const size_t newline = std::min(bytes.find('\n'), bytes.size());
  std::vector<cluster::Frame> frames = {frame(bytes.substr(0, newline))};
  for (size_t at = newline + 1; at < bytes.size();) {
    const size_t count = static_cast<uint8_t>(bytes[at]);
    frames.push_back(frame(bytes.substr(at + 1, count)));
    at += 1 + count;
  }
  return frames;
}

// A worker answers with an error whatever it catches; what it must not do is break.
template <typename Work>
void as_command(Work&& work) {
  try {
    work();
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
}

void read_all(const Message& message) {
  const Json& header = message.header;
  for (const char* text : {"command", "event", "error", "host"}) header.value(text, "");
  for (const auto& entry : header.items()) {
    as_command([&] { message.batch(entry.key()).select(std::vector<int64_t>{0}); });
  }
  as_command([&] { cluster::make_requests(header.at("sampling"), message.batch("prompts")); });
  as_command([&] { plugin::MetricSum().add(header.at("metrics")); });
  as_command([&] { cluster::refit_part_from(header.at("part")); });
  as_command([&] {
    std::vector<cluster::Layout> needed = {header.at("needed").get<cluster::Layout>()};
    cluster::plan_refit({header.at("held").get<cluster::Layout>()}, needed, 1 << 20);
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const Message message = cluster::decode(frames_in(fuzz::text_of(data, size)));
    cluster::encode_header(message);
    read_all(message);
  });
  return 0;
}
