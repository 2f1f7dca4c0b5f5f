// What the bridge uses of OpenAI's HTTP, over a model of no size: token ids in, token ids and log-probs out.
#pragma once
#include <string>

#include "plugins/server_bridge/stand_in/http_server.hpp"
#include "plugins/server_bridge/stand_in/model.hpp"

namespace hexad::openai::stand_in {

using namespace bridge::stand_in;

class Server {
 public:
  // `name`: of the model, as requests say it. Throws std::exception where the model cannot be read.
  Server(const std::string& model_dir, std::string name, std::string api_key)
      : name_(std::move(name)), api_key_(std::move(api_key)), model_(model_dir) {}

  // Answers one request; throws Gone.
  void handle(const Connection& to, const Request& request) const;

 private:
  void complete(const Connection& to, const std::string& asked) const;

  std::string name_, api_key_;
  Model model_;
};

}  // namespace hexad::openai::stand_in
