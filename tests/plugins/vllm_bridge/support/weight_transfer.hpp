// A server's side of weight transfer by CUDA IPC, in the trainer's process: the handle of fake_cuda.c is an address.
#pragma once
#include <sodium.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vllm_test {

using Json = nlohmann::ordered_json;

// What weights in memory do to the model, whatever the buckets that they came in.
inline uint64_t add_weight(uint64_t hash, const std::string& name, const std::string& bytes) {
  uint64_t h = 7;
  for (const char byte : name + bytes) h = (h ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  return hash + h;
}

class WeightTransfer {
 public:
  // Nothing for a path that is not of weight transfer; else what is wrong with the call, "" if nothing is.
  std::optional<std::string> take(const std::string& path, const Json& body, std::atomic<uint64_t>& weights) {
    const std::lock_guard lock(mutex_);
    if (path == "/init_weight_transfer_engine") return ready_ = true, "";
    if (path == "/start_weight_update") {
      if (!ready_ || started_) return ready_ ? "already active" : "not initialized";
      return started_ = true, hash_ = 0, "";
    }
    if (path == "/finish_weight_update") {
      if (!started_) return "without a matching start_weight_update";
      return started_ = false, weights = hash_, "";
    }
    if (path != "/update_weights") return std::nullopt;
    if (!started_) return "start_weight_update must be called before";
    return load(body.at("update_info"));
  }

 private:
  std::string load(const Json& info) {
    if (!info.value("packed", false)) return "wanted packed";
    std::string pickle(info.at("ipc_handles_pickled").get<std::string>());
    std::vector<unsigned char> bytes(pickle.size());
    size_t size = 0;
    if (sodium_base642bin(bytes.data(), bytes.size(), pickle.data(), pickle.size(), nullptr, &size, nullptr,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
      return "not base64";
    const std::string text(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    if (text.find("00112233-4455-6677-8899-aabbccddeeff") == std::string::npos) return "another GPU";
    const size_t at = text.find(std::string("C\x42\x01") + "c");  // 66 bytes, version 1, cudaMalloc
    if (at == std::string::npos) return "no handle";
    const char* memory = nullptr;
    std::memcpy(&memory, text.data() + at + 4, sizeof memory);
    for (size_t i = 0; i < info.at("names").size(); ++i) {
      const auto count = info.at("tensor_sizes").at(i).get<size_t>();
      hash_ = add_weight(hash_, info.at("names").at(i).get<std::string>(), std::string(memory, count));
      memory += count;
    }
    return "";
  }

  std::mutex mutex_;
  bool ready_ = false, started_ = false;
  uint64_t hash_ = 0;
};

}  // namespace vllm_test
