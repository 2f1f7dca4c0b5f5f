// Weights to SGLang servers by process groups, over gloo or NCCL, one a server: /init_weights_update_group, a broadcast
// with each /update_weights_from_distributed, /destroy_weights_update_group. Protocol: SGLang 0.5.23's
// weight_updater.py and tensor_bucket.py (flattened_bucket: the weights' bytes end to end).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "modeling/refit/group/store.hpp"
#include "plugins/server_bridge/refit/group_channel.hpp"

namespace hexad::sglang {

using namespace bridge;

class UpdateGroups : public GroupChannel {
 public:
  // gloo: weights pass through the host, on both sides. nccl: from GPU to GPU.
  enum class Backend { gloo, nccl };

  // `address`: of this host, IPv4, where servers meet it. `goodbye`: the longest wait for a server to leave its group.
  UpdateGroups(Backend backend, Control& control, Seconds deadline, Seconds goodbye, std::string address,
               size_t buffer_bytes = size_t{256} << 20);
  ~UpdateGroups() override;  // has the servers leave

  const char* backend() const override { return backend_ == Backend::nccl ? "nccl" : "gloo"; }
  void connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) override;

 private:
  struct Group {
    Target target;
    std::string name;
  };
  std::unique_ptr<refit::Sender> join(const sdk::Call& call, const Target& target) override;
  std::unique_ptr<refit::Sender> join_nccl(const sdk::Call& call, const Target& target, const Post& ask,
                                           std::unique_ptr<refit::Store> store, const std::string& name, int ranks);
  std::string update_path() const override { return "/update_weights_from_distributed"; }
  std::string update_body(const Target& target, refit::Slices weights) const override;
  void leave(const Target& target) override;

  const Backend backend_;
  Seconds goodbye_;
  std::string address_, run_name_, version_;
  int64_t made_ = 0;             // groups
  std::map<int, Group> groups_;  // by server
};

}  // namespace hexad::sglang
