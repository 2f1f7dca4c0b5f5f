// What the bridge uses of vLLM's HTTP, over a model of no size.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/server_bridge/stand_in/http_server.hpp"
#include "plugins/server_bridge/stand_in/model.hpp"

namespace hexad::vllm::stand_in {

using namespace bridge::stand_in;

// A generation request, as far as it has come.
struct Generation {
  std::string name;             // the client's for it
  std::vector<int32_t> tokens;  // of the prompt, and those that were drawn
  std::set<int32_t> stops;
  Sampling sampling;
  int64_t drawn = 0, most = 0;

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
  void generate(const Connection& to, const Request& request);
  void load(const std::string& dir);
  std::shared_ptr<const Model> model() const;
  bool waits_for_resume() const;

  std::string api_key_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Model> model_;
  std::atomic<bool> paused_{false};
};

// vLLM's options that say what is served, and where; others are ignored.
struct Options {
  std::string model_dir, api_key;  // the key is the environment's VLLM_API_KEY
  int port = 0;
};
Options read_options(int argc, char** argv);

}  // namespace hexad::vllm::stand_in
