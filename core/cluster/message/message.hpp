// What controller and workers say to each other: a JSON header and raw tensor frames (ZeroMQ multipart).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/data/batch.hpp"

namespace hexad::cluster {

using Json = nlohmann::ordered_json;

// One message. Tensors ride behind the header without being copied into it; batches are described in the header and
// put their columns among the tensors. What the header holds: protocol/protocol.hpp.
struct Message {
  std::string command, event;    // its name as one of them; a reply has neither
  int64_t step = 0;              // of a command: the run's, which plugins and their errors name
  Json header = Json::object();  // all else
  std::vector<data::Tensor> tensors;

  std::string name() const { return !command.empty() ? command : !event.empty() ? event : "reply"; }
  // Stores a batch under header[key].
  void put(const std::string& key, const data::Batch& batch);
  // The batch stored under header[key]; shares the buffers of `tensors`. Throws Error(worker) if it is not there.
  data::Batch batch(const std::string& key) const;
};

// Frame 0 of a message: its header with the tensors' dtypes and shapes. The tensors' bytes follow, one frame each.
std::string encode_header(const Message& message);

// Inverse. `frames` are the raw bytes as received, each kept alive by its owner. Throws Error(worker) for a malformed
// message (bad JSON, wrong frame count or size): a stranger's bytes never do worse than that.
struct Frame {
  std::shared_ptr<void> owner;
  void* data = nullptr;
  size_t size = 0;
};
Message decode(const std::vector<Frame>& frames);

}  // namespace hexad::cluster
