// What a stand-in answers to updates of weights by process groups: it joins them, and keeps what it is sent.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "modeling/refit/sender.hpp"

namespace hexad::sglang::stand_in {

class WeightGroups {
 public:
  struct Weight {
    std::string dtype;  // as torch calls it
    std::vector<int64_t> shape;
    std::string bytes;
    bool operator==(const Weight&) const = default;
  };
  using Weights = std::map<std::string, Weight>;
  using Named = std::vector<std::pair<std::string, Weight>>;
  struct Reply {
    int status = 200;
    std::string body;
    std::optional<std::string> version = std::nullopt;  // of weights that came with the call
  };

  // Makes a rank's member of a group by what the server was asked to join with.
  using MakeMember = std::function<std::unique_ptr<refit::Sender>(const nlohmann::ordered_json& init)>;

  // A server with so many ranks of tensor parallelism. `nccl`: for groups over it; without it there are none.
  explicit WeightGroups(int ranks = 1, MakeMember nccl = nullptr) : ranks_(ranks), nccl_(std::move(nccl)) {}
  ~WeightGroups() { close(); }

  // Nothing: the path is another call's.
  std::optional<Reply> answer(const std::string& path, const std::string& body);
  // The same, of weights that come with a call: `read` finds them in it. Throws what that throws.
  Reply take(const std::string& body, const std::function<Named(const nlohmann::ordered_json& info)>& read);

  // Weights of these names come in these types and shapes, or are refused once they are here.
  void expect(Weights weights);
  Weights weights() const;
  uint64_t hash() const;  // of their names and bytes
  int64_t groups() const;
  // As if the process had ended: whatever is waited for is given up, and groups are closed.
  void close();

 private:
  using Group = std::vector<std::unique_ptr<refit::Sender>>;  // a member a rank
  Reply join(const std::string& body);
  Reply leave(const std::string& body);
  Reply begin_or_end(bool begin);
  Reply receive(const std::string& body);
  Reply keep(const Named& weights, const nlohmann::ordered_json& info);
  std::vector<std::string> receive_bytes(Group& group, size_t size);  // of each rank
  refit::GiveUp when_closed() const;

  std::unique_ptr<refit::Sender> member(const nlohmann::ordered_json& init, int rank) const;

  const int ranks_;
  const MakeMember nccl_;
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;  // of what follows: calls come one after the other, as in SGLang's scheduler
  bool open_ = false;         // between begin and end
  std::map<std::string, std::shared_ptr<Group>> groups_;
  mutable std::mutex weights_mutex_;  // of what follows
  Weights weights_, expected_;
};

}  // namespace hexad::sglang::stand_in
