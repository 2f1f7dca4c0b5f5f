#include "runtime/group/exchange.hpp"

#include <ATen/Functions.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/tensor_view.hpp"

namespace hexad::runtime {
namespace {

using Work = c10::intrusive_ptr<c10d::Work>;

struct Arrival {
  at::Tensor room, place;  // room is the place itself where that is contiguous
};

// Gloo tells messages between two ranks apart by these.
class Tags {
 public:
  int next(int32_t peer) { return counts_[peer]++; }

 private:
  std::map<int32_t, int> counts_;
};

}  // namespace

hexad_code exchange(hexad_comm* comm, const hexad_transfer* sends, int64_t num_sends, const hexad_transfer* receives,
                    int64_t num_receives) {
  const auto what = [&] {
    return fmt::format("exchange of {} and {} tensors over \"{}\", rank {} of {}", num_sends, num_receives, comm->name,
                       comm->rank, comm->size());
  };
  return guarded(what, [&] {
    c10d::ProcessGroup& group = *comm->group;
    const bool nccl = group.getBackendType() == c10d::ProcessGroup::BackendType::NCCL;
    if (nccl) cuda::check_nccl(group);
    std::optional<c10::StreamGuard> guard;
    if (nccl) guard.emplace(compute_stream(session().device()));
    std::vector<at::Tensor> parts;
    std::vector<Arrival> arrivals;
    for (const hexad_transfer& send : std::span(sends, static_cast<size_t>(num_sends)))
      parts.push_back(strided_view(send.tensor, "a tensor to send").contiguous());
    for (const hexad_transfer& receive : std::span(receives, static_cast<size_t>(num_receives))) {
      const at::Tensor place = strided_view(receive.tensor, "a tensor to receive");
      arrivals.push_back({place.is_contiguous() ? place : at::empty(place.sizes(), place.options()), place});
    }
    if (parts.empty() && arrivals.empty()) return;
    std::vector<Work> works;
    Tags out, in;
    if (nccl) group.startCoalescing(c10::DeviceType::CUDA);
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<at::Tensor> one = {parts[i]};
      works.push_back(group.send(one, sends[i].peer, out.next(sends[i].peer)));
    }
    for (size_t i = 0; i < arrivals.size(); ++i) {
      std::vector<at::Tensor> one = {arrivals[i].room};
      works.push_back(group.recv(one, receives[i].peer, in.next(receives[i].peer)));
    }
    if (nccl) works = {group.endCoalescing(c10::DeviceType::CUDA)};
    for (const Work& work : works)
      if (work) work->wait();
    for (const Arrival& arrival : arrivals)
      if (!arrival.place.is_same(arrival.room)) arrival.place.copy_(arrival.room);
  });
}

}  // namespace hexad::runtime
