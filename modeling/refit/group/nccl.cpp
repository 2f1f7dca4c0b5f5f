#include "modeling/refit/group/nccl.hpp"

#include <string_view>
#include <utility>

namespace hexad::refit {

NcclGroup::NcclGroup(std::unique_ptr<Store> store, Place place)
    : store_(std::move(store)), place_(std::move(place)), id_(new_unique_id()) {
  store_->set(id_key(place_.name), {reinterpret_cast<const char*>(id_.data()), id_.size()});
}

// Of the prefixes that gloo.cpp has, the last is the device that NCCL is for. The key is the count of communicators
// before: ProcessGroupNCCL::broadcastUniqueNCCLID of torch 2.11, for fewer ranks than TORCH_NCCL_RANKS_PER_ROOT (128).
std::string NcclGroup::id_key(const std::string& name) { return name + "/" + name + "//cuda//0"; }

void NcclGroup::broadcast(uintptr_t data, size_t bytes, const GiveUp& give_up) {
  if (!sender_) {
    sender_ = std::make_unique<NcclSender>(id_, place_.ranks, place_.device_id, place_.advice, /*sums=*/false, give_up);
  }
  sender_->broadcast(data, bytes, give_up);
}

}  // namespace hexad::refit
