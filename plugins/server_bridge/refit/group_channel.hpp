// Weights that are broadcast to servers: a group a server, whose rank 0 is this process, so that one that fails harms
// no other. A server that refuses what it is told leaves a broadcast waiting for ever: its answer is watched meanwhile.
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "modeling/refit/sender.hpp"
#include "modeling/refit/staging.hpp"
#include "plugins/server_bridge/refit/channel.hpp"

namespace hexad::bridge {

class GroupChannel : public Channel {
 public:
  void connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) override;
  void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) override;

 protected:
  GroupChannel(Control& control, Seconds deadline, std::unique_ptr<refit::Staging> staging)
      : control_(control), deadline_(deadline), staging_(std::move(staging)) {}

  // A group with every rank of the server. Throws std::exception.
  virtual std::unique_ptr<refit::Sender> join(const sdk::Call& call, const Target& target) = 0;
  // What a server is asked before a message goes out with these weights.
  virtual std::string update_path() const = 0;
  virtual std::string update_body(const Target& target, refit::Slices weights) const = 0;
  // Of a server that leaves, while its group is still there.
  virtual void leave(const Target&) {}

  // After the deadline, or when the server has answered that it failed. `what` it did not do by then.
  refit::GiveUp give_up_when(std::shared_future<Answer> answer, const char* what) const;
  // Asks a server to join a group, and makes it with `make`; throws what either says.
  std::unique_ptr<refit::Sender> meet(const Target& target, const Post& ask,
                                      const std::function<std::unique_ptr<refit::Sender>(const refit::GiveUp&)>& make);
  // `address`: of this host. Throws sdk::Error if a server on another host cannot find it; `key` is the address's.
  static void check_reaches(const Target& target, const std::string& address, const char* key);

  Control& control_;
  const Seconds deadline_;

 private:
  struct Member {
    int64_t incarnation = 0;
    std::unique_ptr<refit::Sender> sender;
  };
  void lose(const Target& target, const std::string& why);
  void broadcast(size_t bytes, refit::Slices weights, std::vector<Target>& targets);

  std::unique_ptr<refit::Staging> staging_;
  std::map<int, Member> members_;  // by server
};

}  // namespace hexad::bridge
