#include "sdk/verify/thread_group.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hexad::verify {
namespace {

constexpr auto kPatience = std::chrono::seconds(3);

size_t count_of(const DLTensor& tensor) {
  size_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= static_cast<size_t>(tensor.shape[d]);
  return count;
}
size_t bytes_of(const DLTensor& tensor) { return count_of(tensor) * tensor.dtype.bits / 8; }

template <typename T>
void combine(std::string& into, const DLTensor& from, int32_t op) {
  T* values = reinterpret_cast<T*>(into.data());
  const T* more = HEXAD_DATA(const T, &from);
  for (size_t i = 0; i < into.size() / sizeof(T); ++i)
    values[i] = op == HEXAD_OP_SUM   ? values[i] + more[i]
                : op == HEXAD_OP_MAX ? std::max(values[i], more[i])
                                     : std::min(values[i], more[i]);
}

// The reduction of all parts' inputs; empty if the type is none that the kit can add.
std::string reduced(const ThreadGroup::Part* parts, int32_t op) {
  const DLTensor& first = *parts[0].in;
  std::string sum(HEXAD_DATA(const char, &first), bytes_of(first));
  for (int rank = 1; rank < ThreadGroup::kRanks; ++rank) {
    const DLTensor& more = *parts[rank].in;
    const bool wide = first.dtype.bits == 64;
    if (first.dtype.code == kDLFloat && first.dtype.bits >= 32) {
      wide ? combine<double>(sum, more, op) : combine<float>(sum, more, op);
    } else if (first.dtype.code == kDLInt && first.dtype.bits >= 32) {
      wide ? combine<int64_t>(sum, more, op) : combine<int32_t>(sum, more, op);
    } else {
      return "";
    }
  }
  return sum;
}

// What this rank's output becomes.
std::string result_of(const ThreadGroup::Part* parts, int rank) {
  const ThreadGroup::Part& own = parts[rank];
  if (own.what == "all_reduce") return reduced(parts, own.argument);
  if (own.what == "broadcast")
    return std::string(HEXAD_DATA(const char, parts[own.argument].in), bytes_of(*parts[own.argument].in));
  if (own.what == "all_gather") {
    std::string all;
    for (int r = 0; r < ThreadGroup::kRanks; ++r) all.append(HEXAD_DATA(const char, parts[r].in), bytes_of(*own.in));
    return all;
  }
  const std::string sum = reduced(parts, HEXAD_OP_SUM);  // reduce_scatter
  return sum.empty() ? sum
                     : sum.substr(sum.size() / ThreadGroup::kRanks * static_cast<size_t>(rank), bytes_of(*own.out));
}

}  // namespace

bool ThreadGroup::meet() {
  std::unique_lock lock(mutex_);
  const int64_t round = round_;
  if (++arrived_ == kRanks) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return true;
  }
  if (changed_.wait_for(lock, kPatience, [&] { return round_ != round; })) return true;
  --arrived_;
  return false;
}

std::string ThreadGroup::run(int rank, const Part& part) {
  parts_[rank] = part;
  if (!meet()) return part.what + ": the other rank did not come";
  const Part other = parts_[1 - rank];
  std::string result;
  if (other.what == part.what && part.in) {
    const bool same = bytes_of(*part.in) == bytes_of(*other.in) && part.argument == other.argument &&
                      part.in->device.device_type == kDLCPU;
    if (same) result = result_of(parts_, rank);
  }
  if (!meet()) return part.what + ": the other rank did not come";
  if (other.what != part.what) return "one rank calls " + part.what + ", the other " + other.what;
  if (!part.in) return "";
  if (result.size() != bytes_of(*part.out)) return part.what + ": the ranks' tensors do not fit together";
  std::memcpy(HEXAD_DATA(char, part.out), result.data(), result.size());
  return "";
}

void ThreadGroup::put(const std::string& key, std::string value) {
  const std::scoped_lock lock(mutex_);
  store_[key] = std::move(value);
  changed_.notify_all();
}
bool ThreadGroup::get(const std::string& key, int64_t timeout_ms, std::string& value) {
  std::unique_lock lock(mutex_);
  const auto patience = std::min<std::chrono::milliseconds>(kPatience, std::chrono::milliseconds(timeout_ms));
  if (!changed_.wait_for(lock, patience, [&] { return store_.contains(key); })) return false;
  value = store_[key];
  return true;
}

void ThreadGroup::fail_at(int64_t n) {
  tripped_ = false;
  for (auto& fuse : fuse_) fuse = n;
}
bool ThreadGroup::trips(int rank) {
  if (fuse_[rank] <= 0 || --fuse_[rank] != 0) return false;
  tripped_ = true;
  return true;
}

// ---- The host table
// --------------------------------------------------------------------------------------------------

namespace {

// A rank's end of the group; hexad_comm is this.
struct Comm {
  int rank = 0;
};
Comm ends[ThreadGroup::kRanks] = {{0}, {1}};
ThreadGroup* group = nullptr;
const hexad_host* real = nullptr;
std::mutex calls_mutex;
std::map<const hexad_call*, int> rank_of_call;
thread_local std::string fetched;  // what kv_get returned, until the thread's next one

int rank_of(const hexad_call* call) {
  const std::scoped_lock lock(calls_mutex);
  return rank_of_call.at(call);
}

hexad_code refuse(hexad_call* call, hexad_code code, const std::string& text) {
  return real->set_error(call, code, text.data(), text.size());
}

// Runs `service` unless it is to fail.
template <typename Service>
hexad_code counted(hexad_call* call, const char* name, Service&& service) {
  if (group->trips(rank_of(call)))
    return refuse(call, HEXAD_UNAVAILABLE, std::string("the conformance kit made ") + name + " fail");
  const std::string problem = service();
  return problem.empty() ? HEXAD_OK : refuse(call, HEXAD_DEADLINE_EXCEEDED, problem);
}

hexad_code collective(hexad_call* call, hexad_comm* comm, const ThreadGroup::Part& part) {
  if (!comm) return refuse(call, HEXAD_INVALID_ARGUMENT, part.what + ": the group is NULL, which has one rank");
  return counted(call, part.what.c_str(), [&] { return group->run(reinterpret_cast<Comm*>(comm)->rank, part); });
}

hexad_code comm_axis(hexad_call* call, const char* axis, hexad_comm** out) {
  return counted(call, "comm_axis", [&] {
    const bool whole = std::strcmp(axis, "world") == 0 || std::strcmp(axis, "dp") == 0;
    *out = whole ? reinterpret_cast<hexad_comm*>(&ends[rank_of(call)]) : nullptr;
    return std::string();
  });
}
hexad_code comm_new(hexad_call* call, const int32_t* ranks, int32_t num_ranks, const char*, hexad_comm** out) {
  return counted(call, "comm_new", [&] {
    const std::string problem = group->run(rank_of(call), {"comm_new", nullptr, nullptr, num_ranks});
    if (!problem.empty()) return problem;
    *out = num_ranks == ThreadGroup::kRanks && ranks ? reinterpret_cast<hexad_comm*>(&ends[rank_of(call)]) : nullptr;
    return std::string();
  });
}
int32_t comm_rank(const hexad_comm* comm) { return comm ? reinterpret_cast<const Comm*>(comm)->rank : 0; }
int32_t comm_size(const hexad_comm* comm) { return comm ? ThreadGroup::kRanks : 1; }

hexad_code all_reduce(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t op) {
  return collective(call, comm, {"all_reduce", tensor, tensor, op});
}
hexad_code all_gather(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return collective(call, comm, {"all_gather", in, out, 0});
}
hexad_code reduce_scatter(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return collective(call, comm, {"reduce_scatter", in, out, 0});
}
hexad_code broadcast(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t root) {
  if (root < 0 || root >= ThreadGroup::kRanks) return refuse(call, HEXAD_INVALID_ARGUMENT, "broadcast: no such root");
  return collective(call, comm, {"broadcast", tensor, tensor, root});
}
hexad_code barrier(hexad_call* call, hexad_comm* comm) { return collective(call, comm, {"barrier"}); }
hexad_code comm_native(hexad_call* call, hexad_comm*, const char* kind, void**) {
  return refuse(call, HEXAD_UNIMPLEMENTED, std::string("comm_native: this group is no ") + kind);
}
hexad_code kv_put(hexad_call* call, const char* key, const void* value, uint64_t size) {
  return counted(call, "kv_put", [&] {
    group->put(key, std::string(static_cast<const char*>(value), size));
    return std::string();
  });
}
hexad_code kv_get(hexad_call* call, const char* key, int64_t timeout_ms, const void** value, uint64_t* size) {
  return counted(call, "kv_get", [&] {
    if (!group->get(key, timeout_ms, fetched)) return std::string("kv_get: no ") + key;
    *value = fetched.data();
    *size = fetched.size();
    return std::string();
  });
}

const hexad_host* table_over(const hexad_host& below) {
  auto* host = new hexad_host(below);  // leaked, as a host table has to live on
  host->comm_axis = comm_axis;
  host->comm_new = comm_new;
  host->comm_rank = comm_rank;
  host->comm_size = comm_size;
  host->all_reduce = all_reduce;
  host->all_gather = all_gather;
  host->reduce_scatter = reduce_scatter;
  host->broadcast = broadcast;
  host->barrier = barrier;
  host->comm_native = comm_native;
  host->kv_put = kv_put;
  host->kv_get = kv_get;
  return host;
}

// A call that is known to be of a rank.
class RankCall : public Call {
 public:
  RankCall(std::unique_ptr<Call> call, int rank) : call_(std::move(call)) {
    const std::scoped_lock lock(calls_mutex);
    rank_of_call[call_->handle()] = rank;
  }
  ~RankCall() override {
    const std::scoped_lock lock(calls_mutex);
    rank_of_call.erase(call_->handle());
  }
  hexad_call* handle() override { return call_->handle(); }
  hexad_code code() const override { return call_->code(); }
  std::string text() const override { return call_->text(); }

 private:
  std::unique_ptr<Call> call_;
};

}  // namespace

RankEngine::RankEngine(Engine& engine, ThreadGroup& ranks, int rank) : real_(engine), rank_(rank) {
  group = &ranks;
  real = engine.host();
  static const hexad_host* const table = table_over(*real);
  host_ = table;
}

std::unique_ptr<Call> RankEngine::call(const CallOptions& options) {
  return std::make_unique<RankCall>(real_.call(options), rank_);
}

}  // namespace hexad::verify
