// GGUF (llama.cpp's model files), versions 2 and 3, read by mmap. Every length is checked against the file before it is
// used. Format: magic, version, counts, metadata key/values, tensor infos, aligned tensor data.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/tensorfile/mapped_file.hpp"

namespace hexad::tensorfile {

// Storage types that can be read; the values are the file format's.
enum class GgufType : uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, bf16 = 30 };

struct GgufTensor {
  std::string name;
  GgufType type;
  std::vector<int64_t> shape;       // row-major, outermost first (the file has it innermost first)
  std::span<const std::byte> data;  // into the mapped file

  uint64_t elements() const;
};

// A metadata value. Integers of every width are int64 (u64 beyond that is refused), arrays are of one kind.
using GgufValue = std::variant<bool, int64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

class Gguf {
 public:
  static Gguf open(const std::filesystem::path& path);  // throws hexad::Error naming path, offset and what is wrong
  // The same from the bytes of a file, which must outlive the result; `path` names them in errors.
  static Gguf parse(std::span<const std::byte> file, const std::filesystem::path& path);

  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;  // nullptr when absent
  const std::filesystem::path& path() const { return path_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }  // null of bytes alone

  // A metadata value of type T (one of GgufValue's alternatives; double also takes an integer).
  template <typename T>
  T get(const std::string& key) const;  // fails when absent or of another type
  template <typename T>
  T get_or(const std::string& key, T fallback) const;  // fails only when of another type

 private:
  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
};

// The values of a tensor as fp32: quantised blocks are expanded with the reference formulas of ggml.
std::vector<float> dequantize(const GgufTensor& tensor);

}  // namespace hexad::tensorfile
