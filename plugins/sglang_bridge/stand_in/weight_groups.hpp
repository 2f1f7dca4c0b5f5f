// What a stand-in answers to updates of weights by process groups: it joins them, and keeps what it is sent.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "modeling/refit/group/gloo.hpp"

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
  struct Reply {
    int status = 200;
    std::string body;
    std::optional<std::string> version = std::nullopt;  // of weights that came with the call
  };

  // A server with so many ranks of tensor parallelism.
  explicit WeightGroups(int ranks = 1) : ranks_(ranks) {}
  ~WeightGroups() { close(); }

  // Nothing: the path is another call's.
  std::optional<Reply> answer(const std::string& path, const std::string& body);

  // Weights of these names come in these types and shapes, or are refused once they are here.
  void expect(Weights weights);
  Weights weights() const;
  uint64_t hash() const;  // of their names and bytes
  int64_t groups() const;
  // As if the process had ended: whatever is waited for is given up, and groups are closed.
  void close();

 private:
  using Group = std::vector<std::unique_ptr<refit::GlooGroup>>;  // a member a rank
  Reply join(const std::string& body);
  Reply leave(const std::string& body);
  Reply begin_or_end(bool begin);
  Reply receive(const std::string& body);
  std::vector<std::string> receive_bytes(Group& group, size_t size);  // of each rank
  refit::GiveUp when_closed() const;

  const int ranks_;
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;  // of what follows: calls come one after the other, as in SGLang's scheduler
  bool open_ = false;         // between begin and end
  std::map<std::string, std::shared_ptr<Group>> groups_;
  mutable std::mutex weights_mutex_;  // of what follows
  Weights weights_, expected_;
};

}  // namespace hexad::sglang::stand_in
