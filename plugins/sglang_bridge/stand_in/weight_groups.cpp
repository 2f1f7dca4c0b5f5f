#include "plugins/sglang_bridge/stand_in/weight_groups.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <future>
#include <stdexcept>

#include "modeling/refit/group/gloo.hpp"
#include "modeling/refit/group/store.hpp"

namespace hexad::sglang::stand_in {
namespace {

using Json = nlohmann::ordered_json;
using Reply = WeightGroups::Reply;

constexpr int kPatienceMs = 30'000;

Reply reply_of(bool success, const std::string& message) {
  return {success ? 200 : 400, Json{{"success", success}, {"message", message}}.dump()};
}

size_t bytes_of(const WeightGroups::Weight& weight) {
  static const std::map<std::string, size_t> sizes = {
      {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"float8_e4m3fn", 1}};
  size_t bytes = sizes.at(weight.dtype);
  for (const int64_t size : weight.shape) bytes *= static_cast<size_t>(size);
  return bytes;
}

// Of rank 0, which may have gone: what is waited for ends with its connection, or after kPatienceMs.
std::unique_ptr<refit::Sender> gloo_member(const Json& init, int rank, const refit::GiveUp& give_up) {
  const refit::Store store(init.at("master_address").get<std::string>(), init.at("master_port").get<int>(),
                           kPatienceMs);
  const refit::GlooGroup::Place place{.name = init.at("group_name").get<std::string>(),
                                      .address = "127.0.0.1",
                                      .rank = init.at("rank_offset").get<int>() + rank,
                                      .ranks = init.at("world_size").get<int>(),
                                      .patience = std::chrono::milliseconds(kPatienceMs)};
  return std::make_unique<refit::GlooGroup>(store, place, give_up);
}

}  // namespace

std::optional<Reply> WeightGroups::answer(const std::string& path, const std::string& body) {
  if (path == "/init_weights_update_group") return join(body);
  if (path == "/destroy_weights_update_group") return leave(body);
  if (path == "/begin_weight_update") return begin_or_end(true);
  if (path == "/end_weight_update") return begin_or_end(false);
  if (path == "/update_weights_from_distributed") return receive(body);
  return std::nullopt;
}

refit::GiveUp WeightGroups::when_closed() const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  return [this, end]() -> std::string {
    if (closed_) return "this server has ended";
    return std::chrono::steady_clock::now() > end ? "nothing came" : "";
  };
}

std::unique_ptr<refit::Sender> WeightGroups::member(const Json& init, int rank) const {
  if (init.at("backend") == "nccl" && nccl_) return nccl_(init);
  if (init.at("backend") != "gloo") throw std::runtime_error("no such backend");
  return gloo_member(init, rank, when_closed());
}

Reply WeightGroups::join(const std::string& body) {
  const std::lock_guard lock(mutex_);
  const Json init = Json::parse(body);
  const auto name = init.at("group_name").get<std::string>();
  try {
    if (groups_.contains(name)) throw std::runtime_error("The specified group name has already been created");
    std::vector<std::future<std::unique_ptr<refit::Sender>>> joining;
    for (int rank = 0; rank < ranks_; ++rank)
      joining.push_back(std::async(std::launch::async, [&, rank] { return member(init, rank); }));
    auto group = std::make_shared<Group>();
    for (auto& one : joining) group->push_back(one.get());
    groups_[name] = std::move(group);
    return reply_of(true, "Succeeded to initialize custom process group.");
  } catch (const std::exception& error) {
    return reply_of(false, std::string("Failed to initialize custom process group: ") + error.what() + ".");
  }
}

Reply WeightGroups::leave(const std::string& body) {
  const std::lock_guard lock(mutex_);
  const bool known = groups_.erase(Json::parse(body).at("group_name").get<std::string>()) > 0;
  return known ? reply_of(true, "Succeeded to destroy custom process group.")
               : reply_of(false, "The group to be destroyed does not exist.");
}

Reply WeightGroups::begin_or_end(bool begin) {
  const std::lock_guard lock(mutex_);
  if (begin && open_) return reply_of(false, "a weight-update session is already open; call end_weight_update() first");
  if (!begin && !open_) return reply_of(false, "no weight-update session is open; call begin_weight_update() first");
  open_ = begin;
  return reply_of(true, "Success");
}

std::vector<std::string> WeightGroups::receive_bytes(Group& group, size_t size) {
  std::vector<std::string> bytes(group.size(), std::string(size, '\0'));
  for (size_t i = 0; i < group.size(); ++i)
    group[i]->broadcast(reinterpret_cast<uintptr_t>(bytes[i].data()), size, when_closed());
  for (const auto& one : group) one->wait(when_closed());
  return bytes;
}

Reply WeightGroups::receive(const std::string& body) {
  const std::lock_guard lock(mutex_);
  if (!open_) {
    return reply_of(false,
                    "update_weights_from_distributed must run between begin_weight_update() and end_weight_update()");
  }
  const Json info = Json::parse(body);
  if (info.value("load_format", "") != "flattened_bucket")
    return reply_of(false, "this stand-in takes flattened_bucket alone");
  const auto group = groups_.find(info.at("group_name").get<std::string>());
  if (group == groups_.end()) {
    return reply_of(false, "Failed to receive weights: Group " + info.at("group_name").dump() +
                               " is not there. Please call `init_weights_update_group` first.");
  }
  Named described;
  size_t size = 0;
  for (size_t i = 0; i < info.at("names").size(); ++i) {
    Weight weight{info.at("dtypes").at(i).get<std::string>(), info.at("shapes").at(i).get<std::vector<int64_t>>(), ""};
    size += bytes_of(weight);
    described.emplace_back(info.at("names").at(i).get<std::string>(), std::move(weight));
  }
  std::vector<std::string> bytes;
  try {
    bytes = receive_bytes(*group->second, size);
  } catch (const std::exception& error) {
    return reply_of(false, std::string("Failed to receive weights: ") + error.what());
  }
  for (const std::string& other : bytes)
    if (other != bytes.front()) return reply_of(false, "ranks have received other bytes");
  size_t at = 0;
  for (auto& [name, weight] : described) {
    weight.bytes = bytes.front().substr(at, bytes_of(weight));
    at += weight.bytes.size();
  }
  return keep(described, info);
}

Reply WeightGroups::take(const std::string& body, const std::function<Named(const Json& info)>& read) {
  const std::lock_guard lock(mutex_);
  if (!open_)
    return reply_of(false, "update_weights_from_tensor must run between begin_weight_update() and end_weight_update()");
  const Json info = Json::parse(body);
  return keep(read(info), info);
}

Reply WeightGroups::keep(const Named& weights, const Json& info) {
  const std::lock_guard lock(weights_mutex_);
  for (const auto& [name, weight] : weights) {
    const auto wanted = expected_.find(name);
    if (wanted != expected_.end() && (wanted->second.dtype != weight.dtype || wanted->second.shape != weight.shape))
      return reply_of(false, "Failed to update parameter online: " + name + " has another shape or type");
    weights_[name] = weight;
  }
  Reply reply = reply_of(true, "Succeeded to update parameter online.");
  reply.version = info.value("weight_version", "default");
  return reply;
}

void WeightGroups::expect(Weights weights) {
  const std::lock_guard lock(weights_mutex_);
  expected_ = std::move(weights);
}

WeightGroups::Weights WeightGroups::weights() const {
  const std::lock_guard lock(weights_mutex_);
  return weights_;
}

uint64_t WeightGroups::hash() const {
  const std::lock_guard lock(weights_mutex_);
  uint64_t hash = 1469598103934665603ull;
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  };
  for (const auto& [name, weight] : weights_) add(name), add(weight.bytes);
  return hash;
}

int64_t WeightGroups::groups() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(groups_.size());
}

void WeightGroups::close() {
  closed_ = true;
  const std::lock_guard lock(mutex_);
  groups_.clear();
}

}  // namespace hexad::sglang::stand_in
