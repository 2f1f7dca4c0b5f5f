// What the bridge uses of SGLang's HTTP, over a model of no size.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/server_bridge/stand_in/http_server.hpp"
#include "plugins/server_bridge/stand_in/model.hpp"
#include "plugins/sglang_bridge/stand_in/weight_groups.hpp"

namespace hexad::sglang::stand_in {

using namespace bridge::stand_in;

// A request, as far as it has come.
struct Generation {
  std::string name;             // the client's for it
  std::vector<int32_t> tokens;  // of the prompt, and those that were drawn
  std::vector<double> logprobs;
  std::vector<std::string> versions;  // of the weights, one a token
  std::set<int32_t> stops;
  Sampling sampling;
  int64_t drawn = 0, most = 0, interval = 1;
  int64_t aborts_before = 0;  // of all requests

  bool is_over() const { return drawn == most || (drawn > 0 && stops.contains(tokens.back())); }
};

class Server {
 public:
  Server(const std::string& model_dir, std::string api_key);
  virtual ~Server() = default;

  // Answers one request; throws Gone.
  virtual void handle(const Connection& to, const Request& request);

 protected:
  // Before a token is drawn, and once it is, before it is sent. From the threads of all connections.
  virtual void before_token(const Connection&, const Generation&) {}
  virtual void before_sending(const Generation&) {}

 private:
  void answer(const Connection& to, const Request& request);
  void update(const Connection& to, const Request& request);
  bool update_by_group(const Connection& to, const Request& request);
  void generate(const Connection& to, const Request& request);
  void draw(Generation& generation);
  // Waits until nothing is paused. False: the request was aborted.
  bool may_go_on(const Connection& to, const Generation& generation);

  std::string api_key_, model_dir_, model_type_;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const Model> model_;
  std::string version_ = "default";
  std::set<std::string> aborted_;
  std::atomic<bool> paused_{false};
  WeightGroups groups_;
  std::atomic<int64_t> aborts_of_all_{0};
};

// SGLang's options that say what is served, and where; others are ignored.
struct Options {
  std::string model_dir, api_key;  // the key is in the file of --config
  int port = 0;
};
Options read_options(int argc, char** argv);

}  // namespace hexad::sglang::stand_in
