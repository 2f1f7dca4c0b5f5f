// All that tells one engine's servers from another's: their names, their command line, their HTTP. A bridge has one of
// these, and nothing else here knows which engine it is.
#pragma once
#include <hexad/services.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lib/http/client/transfers.hpp"
#include "lib/server/child.hpp"
#include "plugins/server_bridge/protocol/exchange.hpp"
#include "plugins/server_bridge/refit/formed_bucket.hpp"

namespace hexad::bridge {

using namespace http::client;

class Channel;
class Control;

struct Names {
  const char* engine;   // as its users write it
  const char* section;  // of policy.generation
  const char* program;  // of its servers' logs and folders
};

// A model of a server.
struct Served {
  std::string name;
  int64_t max_length = 0, vocabulary = 0;  // tokens; 0: it does not say
};

// What a server says of itself when it is met.
struct Facts {
  std::string version;          // "": it does not say
  std::string generate;         // path of its generation
  bool updates = false;         // can pause, and be given weights
  bool paused = false;          // when it was asked
  bool sleeps = false;          // can give memory back
  bool routes = false;          // says where routers sent tokens, if it is asked
  bool salts = false;           // keeps apart prefixes of requests with other salts
  bool greedy_only = false;     // what it draws with a temperature is wrong
  std::string weight_transfer;  // how it takes weights without a disk; "": it does not
  std::string logprobs_mode;    // "": it does not say
  std::string quantization;     // of its weights; "": it does not say
  std::string weight_version;   // what it calls its weights
  std::string model_type;       // as config.json has it; "": it does not say
  int64_t max_length = 0;       // prompt and response, tokens; 0: it does not say
  std::vector<Served> models;   // empty: it does not say
  std::string form;             // of requests, in the dialect's words
  std::string sample;           // its answer to one, which shows what it answers with
  std::string notice;           // what its users are to know, after the name of the server
};

// What an answer to a probe comes to.
struct Verdict {
  enum Kind {
    next,     // to be asked the next probe
    ready,    // there is nothing more to ask
    trouble,  // the answer is none; asked again later
    wrong     // for the reason in `text`; asked again later
  } kind = next;
  std::string text = {};
};

// A question to a server that is met, or met again. `name`: of the call, in messages. What it points to is the
// dialect's.
struct Probe {
  const char *name, *method, *path, *body;
  Verdict (*read)(const Answer& answer, Facts& facts);
};

// A POST.
struct Post {
  std::string path, body = "{}";
};

// Where a server of ours listens, and what it loads.
struct Launch {
  std::string model_dir;
  int port = 0;
  std::string api_key;
};

// What is to be said of a server's log-probs for a request.
struct Doubt {
  bool refuses = false;    // the request cannot be answered; else it is a warning
  std::string text;        // after the name of the server
  std::string about = {};  // what the request has, where it is refused: before that name
};

// Functions are called by any thread, at once; the object keeps nothing of a server.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual Names names() const = 0;
  // Adds what a server of ours needs to its command, before the arguments of settings. Throws std::exception.
  virtual void launch(server::Command& command, const Launch& launch) const = 0;

  // Asked in turn when a server is met.
  virtual std::span<const Probe> probes() const = 0;
  // What keeps a server that has said all this from being one of this run's; "": nothing.
  virtual std::string mismatch(const Facts&) const { return ""; }
  // GET: 200 while it is well, whatever it does.
  virtual const char* health() const { return "/health"; }
  // Of its answer to that. Without room for more (429) it is there.
  virtual bool is_well(const Answer& answer) const { return answer.ok() || answer.result.status == 429; }
  // Tells it what to call the weights that it was met with, if its answers name their weights.
  virtual std::optional<Post> name_weights(const Facts&, int64_t) const { return std::nullopt; }

  // Whether answers come as a stream of events; else each is one JSON document, and what a lost server had of it is
  // lost.
  virtual bool streams() const { return true; }
  virtual std::string body_of(const Facts& facts, const Ask& ask) const = 0;
  // An event of a stream that has brought the tokens `known`. Throws std::runtime_error with what is wrong with it.
  virtual Chunk parse(const Facts& facts, std::string_view data, std::span<const int32_t> known) const = 0;
  // A whole answer, where it is no stream. Throws as parse.
  virtual Chunk read_answer(const Facts&, const Ask&, std::string_view) const {
    throw std::logic_error("the answers of this engine are streams");
  }
  // What helps where a request is refused with a status of 400 to 499, as a sentence with a space before; "": nothing
  // is known.
  virtual std::string mend(long) const { return ""; }
  // Nothing: its log-probs are those of the distribution that the request is drawn from.
  virtual std::optional<Doubt> doubt(const Facts& facts, const Request& request) const = 0;
  // What ends a request on its server beside the end of its connection.
  virtual std::optional<Post> abort(const std::string&) const { return std::nullopt; }

  // Requests that run are kept, or come back without an end.
  virtual Post pause() const = 0;
  virtual Post resume() const = 0;
  // Weights of a version, from a folder.
  virtual Post load(const std::string& dir, int64_t version) const = 0;
  // Drops cached prefixes, and whether it did, as far as that matters with these facts.
  virtual Post flush() const = 0;
  virtual bool flushed(const Facts& facts, const Answer& answer) const = 0;
  // Of servers whose requests were taken back. One after the other.
  virtual std::vector<Post> sleep(int32_t level) const = 0;
  virtual std::vector<Post> wake(int32_t level) const = 0;

  // What servers are to be started with, and the model's own folder has not; null: they start from it.
  virtual const char* lacks() const { return nullptr; }
  // A bucket in the form that servers take; null: in the backend's. Throws sdk::Error for one that has none.
  virtual std::unique_ptr<FormedBucket> formed(const sdk::Call&, const hexad_weight_list&) const { return nullptr; }

  // Around an update that goes without a disk.
  virtual Post begin_update() const = 0;
  virtual Post end_update() const = 0;
  // Throws sdk::Error where the build, or the machine, has no such thing.
  virtual std::unique_ptr<Channel> channel(const std::string& transport, Control& control) const = 0;
  // How a server is started that takes weights at all, and by this transport: in messages.
  virtual std::string wants_updates() const = 0;
  virtual std::string wants_transport(const std::string& transport) const = 0;
  // Whether a server with these facts takes weights by this transport, other than by disk.
  virtual bool takes(const Facts& facts, const std::string& transport) const {
    return facts.weight_transfer == transport;
  }
};

}  // namespace hexad::bridge
