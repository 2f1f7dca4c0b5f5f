// Weights on their way to the servers: a Hugging Face directory that vLLM can load, one safetensors file a bucket.
#pragma once
#include <hexad/services.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hexad::vllm {

// Everything lies in `dir`.part until finish renames it.
class Checkpoint {
 public:
  // What is in `dir` is replaced. `model_dir`: config, tokenizer and so on are taken from there.
  Checkpoint(std::filesystem::path dir, std::filesystem::path model_dir);
  ~Checkpoint();  // removes what is not finished
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // A bucket of whole weights. Throws sdk::Error for a slice, an unknown type, a weight that came before, a full disk.
  void add(const sdk::Call& call, const hexad_weight_list& bucket);
  // The directory. Throws if nothing came.
  std::filesystem::path finish();

 private:
  std::filesystem::path dir_, part_, model_dir_;
  std::map<std::string, std::string> file_of_;  // by weight
  uint64_t bytes_ = 0;
  int files_ = 0;
};

// Whether the directory has weights that a server could start with.
bool has_weights(const std::filesystem::path& dir);

}  // namespace hexad::vllm
