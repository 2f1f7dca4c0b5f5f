// A rank of a server in a group over NCCL, as torch.distributed makes it, over the library that fake_nccl.c is.
#pragma once
#include <dlfcn.h>

#include <bit>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "modeling/refit/group/store.hpp"
#include "modeling/refit/sender.hpp"

namespace sglang_test {

// Both libraries, in the place of those of the driver and of NCCL.
inline void use_fake_nccl() {
  static const bool opened =
      ::dlopen(HEXAD_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL) && ::dlopen(HEXAD_FAKE_NCCL, RTLD_NOW | RTLD_GLOBAL);
  if (!opened) throw std::runtime_error(::dlerror());
}

// The id is read in the first message, from the key that c10d's ProcessGroupNCCL of torch 2.11 asks for: each of the
// prefixes of init_custom_process_group and _new_process_group_helper, and a slash behind it.
class NcclMember : public hexad::refit::Sender {
 public:
  explicit NcclMember(const nlohmann::ordered_json& init)
      : store_(init.at("master_address").get<std::string>(), init.at("master_port").get<int>(), 5000) {
    const auto name = init.at("group_name").get<std::string>();
    key_ = name + "/" + (name + "/") + "/" + "cuda/" + "/" + "0";
  }

  void broadcast(uintptr_t data, size_t bytes, const hexad::refit::GiveUp&) override {
    static auto* const join = function<int (*)(const void*)>("fake_nccl_join");
    if (id_.empty()) {
      id_ = store_.get(key_);
      if (id_.size() != 128 || !join(id_.data())) throw std::runtime_error("no id of a communicator");
    }
    data_ = std::bit_cast<void*>(data), bytes_ = bytes;
  }

  void wait(const hexad::refit::GiveUp& give_up) override {
    static auto* const receive = function<int (*)(const void*, long, void*, size_t)>("fake_nccl_receive");
    for (;;) {
      const int result = receive(id_.data(), seen_, data_, bytes_);
      if (result == 1) return void(++seen_);
      if (result < 0) throw std::runtime_error("NCCL communicator was aborted");
      if (const std::string why = give_up(); !why.empty()) throw std::runtime_error(why);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  template <class F>
  static F function(const char* name) {
    return reinterpret_cast<F>(::dlsym(RTLD_DEFAULT, name));
  }

  hexad::refit::Store store_;
  std::string key_, id_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  long seen_ = 0;
};

}  // namespace sglang_test
