#include "runtime/group/process_group.hpp"

#include <ATen/Functions.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <array>
#include <cstring>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/group/watched_gloo.hpp"

namespace hexad::runtime {
namespace {

// "group 'tp.backend0' of ranks [0, 1]".
std::string label(const hexad_comm& comm) {
  std::string_view name = comm.name;  // that of a block, or comm/<name>/<ranks>
  if (name.starts_with("comm/")) name = name.substr(5, name.rfind('/') - 5);
  return fmt::format("group '{}' of ranks [{}]", name, fmt::join(comm.ranks, ", "));
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const Session& session, const c10::intrusive_ptr<c10d::Store>& store,
                                            const hexad_comm& comm) {
  auto options = c10d::ProcessGroupGloo::Options::create(session.timeout());
  options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(session.local_address)};
  return c10::make_intrusive<WatchedGloo>(store, comm.rank, comm.size(), options, *session.waits, label(comm),
                                          comm.ranks);
}

std::string rank_list(const int32_t* ranks, int32_t count) {
  return fmt::format("[{}]", fmt::join(ranks, ranks + count, ", "));
}

void check_ranks(const int32_t* ranks, int32_t count, int32_t world_size) {
  std::vector<bool> seen(static_cast<size_t>(world_size), false);
  if (count < 1) throw Error(HEXAD_INVALID_ARGUMENT, "the list of ranks is empty");
  for (int32_t i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= world_size)
      throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("rank {} is outside the world of {}", ranks[i], world_size));
    if (seen[static_cast<size_t>(ranks[i])])
      throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("rank {} is listed twice", ranks[i]));
    seen[static_cast<size_t>(ranks[i])] = true;
  }
}

}  // namespace

std::unique_ptr<hexad_comm> make_comm(const Session& session, const std::vector<int32_t>& ranks,
                                      const std::string& name) {
  auto comm = std::make_unique<hexad_comm>();
  comm->name = name;
  comm->ranks = ranks;
  comm->rank = static_cast<int32_t>(std::find(ranks.begin(), ranks.end(), session.options.rank) - ranks.begin());
  const int rank = comm->rank, size = comm->size();
  const auto store = c10::make_intrusive<c10d::PrefixStore>(name, session.store);
  comm->group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
  comm->group->setBackend(at::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                          make_gloo(session, c10::make_intrusive<c10d::PrefixStore>("gloo", store), *comm));
  comm->group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
  if (session.options.device_type == kDLCUDA) {
    comm->group->setBackend(
        at::kCUDA, c10d::ProcessGroup::BackendType::NCCL,
        cuda::make_nccl(c10::make_intrusive<c10d::PrefixStore>("nccl", store), rank, size, session.timeout()));
    comm->group->setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  }
  return comm;
}

void end_comm(hexad_comm& comm) {
  if (comm.group->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) cuda::end_nccl(*comm.group);
  comm.group.reset();
}

namespace {

// A new group of these ranks of the run; NULL where this one is not among them, or alone.
hexad_comm* join(const std::vector<int32_t>& ranks, const char* name) {
  Session& current = session();
  const std::string key = fmt::format("comm/{}/{}", name, rank_list(ranks.data(), static_cast<int32_t>(ranks.size())));
  const bool member = std::find(ranks.begin(), ranks.end(), current.options.rank) != ranks.end();
  if (!member || ranks.size() < 2) return nullptr;
  std::lock_guard lock(current.mutex);
  for (const auto& comm : current.comms)
    if (comm->name == key) throw Error(HEXAD_FAILED_PRECONDITION, "a group of this name and these ranks exists");
  current.comms.push_back(make_comm(current, ranks, key));
  return current.comms.back().get();
}

// NCCL makes its connections in a first call of all ranks; the calls to come may be of a few.
void connect(hexad_comm& comm) {
  if (comm.group->getBackendType() != c10d::ProcessGroup::BackendType::NCCL) return;
  std::vector<at::Tensor> one = {at::zeros({1}, session().device())};
  comm.group->allreduce(one)->wait();
}

}  // namespace

hexad_code comm_axis(const char* axis, hexad_comm** out) {
  return guarded([&] { return fmt::format("comm_axis \"{}\"", axis); },
                 [&] {
                   static constexpr std::array<const char*, 6> axes = {"world", "dp", "tp", "pp", "cp", "ep"};
                   const auto is = [&](const char* name) { return !std::strcmp(axis, name); };
                   if (std::none_of(axes.begin(), axes.end(), is))
                     throw Error(HEXAD_INVALID_ARGUMENT, "wanted one of world, dp, tp, pp, cp, ep");
                   // The host lays out data parallelism alone; a backend with more axes makes its own groups by
                   // comm_new.
                   Session& current = session();
                   const bool whole = is("world") || is("dp");
                   *out = whole && current.options.block_size > 1 ? current.comms.front().get() : nullptr;
                 });
}

hexad_code comm_new(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out) {
  return guarded([&] { return fmt::format("comm_new \"{}\" {}", name, rank_list(ranks, num_ranks)); },
                 [&] {
                   const hexad_runtime_options& options = session().options;
                   check_ranks(ranks, num_ranks, options.block_size);
                   std::vector<int32_t> list(ranks, ranks + num_ranks);
                   for (int32_t& rank : list) rank += options.block_first;
                   *out = join(list, name);
                 });
}

hexad_code comm_across(const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out) {
  return guarded([&] { return fmt::format("comm_across \"{}\" {}", name, rank_list(ranks, num_ranks)); },
                 [&] {
                   check_ranks(ranks, num_ranks, session().options.world_size);
                   hexad_comm* made = join({ranks, ranks + num_ranks}, name);
                   if (made) connect(*made);
                   *out = made;
                 });
}

int32_t comm_rank(const hexad_comm* comm) { return comm->rank; }
int32_t comm_size(const hexad_comm* comm) { return comm->size(); }

hexad_code comm_native(hexad_comm* comm, const char* kind, void** out) {
  return guarded([&] { return fmt::format("comm_native \"{}\"", kind); },
                 [&] {
                   if (!std::strcmp(kind, "c10d")) {
                     *out = comm->group.get();
                   } else if (!std::strcmp(kind, "nccl") &&
                              comm->group->getBackendType() == c10d::ProcessGroup::BackendType::NCCL) {
                     *out = cuda::nccl_handle(*comm->group);
                   } else {
                     throw Error(HEXAD_UNIMPLEMENTED,
                                 "this group is not made of such a library (gloo runs on the CPU)");
                   }
                 });
}

}  // namespace hexad::runtime
