// Writes GGUF files as the format's document says, and wrong ones.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string sized(std::string_view text) { return raw<uint64_t>(text.size()) + std::string(text); }

template <typename T>
std::string raw_list(const std::vector<T>& values) {
  std::string bytes;
  for (const T& value : values) bytes += raw<T>(value);
  return bytes;
}

struct GgufFile {
  enum Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };
  enum Type : uint32_t { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q4_K = 12, BF16 = 30 };

  struct Entry {
    std::string key;
    uint32_t kind;
    std::string payload;
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;  // outermost first
    uint32_t type;
    std::string data;
    std::optional<uint64_t> offset;  // instead of the true one
  };

  uint32_t magic = 0x46554747, version = 3;
  uint64_t alignment = 32;
  std::optional<uint64_t> entry_count, tensor_count;  // instead of the true ones
  std::vector<Entry> entries;
  std::vector<Tensor> tensors;

  void set(const std::string& key, uint32_t kind, std::string payload) {
    for (Entry& entry : entries) {
      if (entry.key == key) return void(entry = {key, kind, std::move(payload)});
    }
    entries.push_back({key, kind, std::move(payload)});
  }
  void set_text(const std::string& key, std::string_view value) { set(key, text, sized(value)); }
  void set_number(const std::string& key, uint32_t value) { set(key, u32, raw(value)); }
  void set_real(const std::string& key, float value) { set(key, f32, raw(value)); }
  void set_flag(const std::string& key, bool value) { set(key, boolean, raw<uint8_t>(value)); }
  void set_integers(const std::string& key, const std::vector<int32_t>& values) {
    set(key, array, raw<uint32_t>(i32) + raw<uint64_t>(values.size()) + raw_list(values));
  }
  void set_texts(const std::string& key, const std::vector<std::string>& values) {
    std::string payload = raw<uint32_t>(text) + raw<uint64_t>(values.size());
    for (const std::string& value : values) payload += sized(value);
    set(key, array, payload);
  }
  void remove(const std::string& key) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
  }

  Tensor& tensor(std::string_view name) {
    for (Tensor& candidate : tensors) {
      if (candidate.name == name) return candidate;
    }
    throw std::logic_error("no such tensor");
  }
  void add_tensor(const std::string& name, std::vector<uint64_t> shape, const std::vector<float>& values) {
    tensors.push_back({name, std::move(shape), F32, raw_list(values), {}});
  }
  void remove_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  }

  std::string bytes() const {
    std::string out = raw(magic) + raw(version) + raw<uint64_t>(tensor_count.value_or(tensors.size())) +
                      raw<uint64_t>(entry_count.value_or(entries.size()));
    for (const Entry& entry : entries) out += sized(entry.key) + raw(entry.kind) + entry.payload;
    std::string data;
    for (const Tensor& tensor : tensors) {
      out += sized(tensor.name) + raw(static_cast<uint32_t>(tensor.shape.size()));
      out += raw_list(std::vector<uint64_t>(tensor.shape.rbegin(), tensor.shape.rend())) + raw(tensor.type);
      out += raw<uint64_t>(tensor.offset.value_or(data.size()));
      data += tensor.data;
      pad(data);
    }
    pad(out);
    return out + data;
  }

 private:
  void pad(std::string& bytes) const { bytes.append((alignment - bytes.size() % alignment) % alignment, '\0'); }
};
