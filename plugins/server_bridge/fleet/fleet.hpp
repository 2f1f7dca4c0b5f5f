// The servers and the requests that they work on. One actor: everything but the constructor, the destructor and what
// says otherwise runs on the loop's thread.
//
// A request waits until a server has room for it, the members of a group follow each other to one server, and what a
// server has sent is in the journal at once. When a server fails, its requests wait again and go on from the tokens
// that they have; it is asked again after a back-off, and takes requests when it holds the weights that are in force.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/server_bridge/fleet/journal.hpp"
#include "plugins/server_bridge/fleet/server.hpp"
#include "plugins/server_bridge/settings.hpp"

namespace hexad::bridge {

// Level and text; from any thread.
using Log = std::function<void(int32_t level, const std::string& text)>;

class Fleet {
 public:
  // What it is given outlives it.
  Fleet(EventLoop& loop, const Dialect& dialect, const Settings& settings, Outbox& outbox, Log log);
  ~Fleet();

  // A new server, or one that has been started anew (its index is known): it is asked until it answers.
  void admit(int index, const std::string& url, const std::string& api_key);
  // What the process of a server says: it is gone.
  void lose(int index, const std::string& why);

  void submit(std::vector<Request> requests);
  void cancel(uint64_t id);
  // Ends it without an event: the poller has found a stop string and made its own.
  void drop(uint64_t id);

  // No request goes out and nobody counts as stalled until resume. Running ones go on if their servers do.
  void hold() { ++held_; }
  void release();
  // Takes the running requests back; they go on when nothing is held any more.
  void recall(int index);
  // Prefixes that servers have cached so far are used no more.
  void forget_prefixes() { ++flushes_, group_server_.clear(); }

  // An update hands weights of this version to servers: from now on tokens may be theirs, also if it does not end well.
  void offer(int64_t version) { given_ = std::max(given_, version); }
  // The weights that are in force from now on, and the folder that servers which do not have them load them from ("":
  // the servers' own model; nothing: there is no copy, and they wait for the next). Those that are up with others are
  // taken out until they hold these.
  void set_version(int64_t version, std::optional<std::string> dir);
  // A server holds these weights now, unless it has failed since it was that incarnation.
  void holds(int index, int64_t incarnation, int64_t version);
  void fail(int index, const std::string& why) { fail(*servers_[static_cast<size_t>(index)], why); }
  // The same, while its weights were changed: nobody knows which it holds.
  void spoil(int index, const std::string& why);

  // This process may open no more files, and no server is to blame: requests wait a while for what others give back.
  void wait_for_descriptors();

  const std::vector<std::unique_ptr<Server>>& servers() const { return servers_; }
  bool any_up() const;
  bool ever_up() const { return ever_up_; }
  // No server will come: requests end with this text.
  void despair(const std::string& why) { outbox_.set_trouble(why); }
  bool has_copy() const { return weights_dir_.has_value(); }  // of the weights in force
  Transfers& transfers() { return transfers_; }

 private:
  using Then = std::function<void(const Answer&)>;

  // fleet.cpp: requests.
  void dispatch();
  Server* choose(const Entry& entry);
  void send(Entry& entry, Server& server);
  bool tells_of_draws(const Server& server, Entry& entry);
  void on_bytes(uint64_t id, long status, std::string_view bytes);
  void on_end(uint64_t id, const HttpResult& result);
  // Of bytes that brought nothing new: throws std::runtime_error if such have come for too long.
  void require_progress(Entry& entry) const;
  void require_known(const std::vector<int32_t>& tokens) const;            // throws std::runtime_error
  void require_given(const std::vector<hexad_version_span>& spans) const;  // the same
  // Whether it brings something new: tokens, or an end.
  bool take_chunk(Entry& entry, Server& server, const Chunk& chunk);
  Ask ask_of(const Entry& entry, const Server& server) const;
  // Of answers that are no streams.
  void collect(Entry& entry, std::string_view bytes);
  void take_answer(Entry& entry);
  // The server has no room for it.
  void rest(Entry& entry, Server& server, const HttpResult& result);
  void settle(Entry& entry, const HttpResult& result);
  void wait_again(Entry& entry, const Server& server, const std::string& why);
  // Whether it ends here, after too many attempts in vain.
  bool give_up(Entry& entry, const std::string& why);
  void finish(Entry& entry, int32_t finish, std::string error = {});
  void leave(Entry& entry);
  // Breaks off the attempt, on the server too.
  void abort(const Entry& entry);

  // health.cpp: servers.
  void probe(Server& server, size_t step = 0);
  void meet(Server& server);  // all has been asked
  bool name_weights(Server& server);
  void check_weights(Server& server);
  void wait_for_weights(Server& server);
  void catch_up(Server& server);
  void open(Server& server);
  // Something went wrong with one request: three in a row, and the server is taken for failed.
  void blame(Server& server, const std::string& why);
  void fail(Server& server, const std::string& why);
  Milliseconds retry(Server& server);  // its back-off
  void put_off(Server& server, const std::string& call, const Answer& answer);
  void put_off(Server& server, const std::string& why);
  void look_around();
  // It has sent nothing new for too long: an attempt in vain for each of its requests.
  void stall(Server& server, const std::string& why);
  void check_health(Server& server);
  void check_lost();
  void ask(Server& server, const std::string& method, const std::string& path, std::string body, Seconds deadline,
           Then then);

  EventLoop& loop_;
  const Dialect& dialect_;
  const Names names_;
  const Settings& settings_;
  Outbox& outbox_;
  Log log_;
  Transfers transfers_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unordered_map<uint64_t, std::unique_ptr<Entry>> journal_;
  std::deque<uint64_t> waiting_;
  std::unordered_map<uint64_t, int> group_server_;  // that has the group's prompt in its cache
  int held_ = 0;
  int64_t version_ = 0, flushes_ = 0;
  int64_t given_ = 0;  // the newest version that a server may hold
  std::optional<std::string> weights_dir_ = "";
  uint64_t attempt_names_ = 0;
  std::string run_name_;  // begins the names of requests: unique among the clients of a server
  Clock::time_point last_up_ = Clock::now(), released_ = last_up_;  // released_: when nothing was held any more
  bool ever_up_ = false, warned_of_logprobs_ = false, short_of_descriptors_ = false;
};

}  // namespace hexad::bridge
