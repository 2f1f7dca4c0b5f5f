// Weights on their way to the servers: a Hugging Face directory that they can load, one safetensors file a bucket.
#pragma once
#include <hexad/services.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plugins/server_bridge/settings.hpp"

namespace hexad::bridge {

// Everything lies in `dir`.part until finish renames it. A file for which the disk has no room is tried again.
class Checkpoint {
 public:
  // What is in `dir` is replaced. `model_dir`: config, tokenizer and so on are taken from there. `patience`: with a
  // full disk. `key`: says where the folder is, in messages.
  Checkpoint(std::filesystem::path dir, std::filesystem::path model_dir, Seconds patience, std::string key);
  ~Checkpoint();  // removes what is not finished
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // A bucket of whole weights. Throws sdk::Error for a slice, an unknown type, a weight that came before, a disk that
  // stays full.
  void add(const sdk::Call& call, const hexad_weight_list& bucket);
  // The directory. Throws if nothing came, or as add.
  std::filesystem::path finish(const sdk::Call& call);

 private:
  // `write` gives 0 or an errno.
  void write_file(const sdk::Call& call, const std::filesystem::path& path, const std::function<int()>& write) const;

  std::filesystem::path dir_, part_, model_dir_;
  Seconds patience_;
  std::string key_;
  std::map<std::string, std::string> file_of_;  // by weight
  uint64_t bytes_ = 0;
  int files_ = 0;
};

// Whether the directory has weights that a server could start with.
bool has_weights(const std::filesystem::path& dir);

}  // namespace hexad::bridge
