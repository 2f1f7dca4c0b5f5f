// Where the ranks of a group meet: a TCPStore of c10d's, which the first rank serves.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace hexad::refit {

class Store {
 public:
  // Listens on `address` (an IPv4 address of this host) at a free port. Throws sdk::Error if it cannot; `key` says in
  // messages where the address comes from.
  Store(const std::string& address, const std::string& key);
  // Another process's. Throws sdk::Error if it does not answer within `patience_ms`.
  Store(const std::string& address, int port, int patience_ms);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  int port() const { return port_; }
  void set(const std::string& name, std::string_view value);
  // Waits for it. Throws sdk::Error if nobody has set it within the store's patience.
  std::string get(const std::string& name);

  struct Tcp;
  Tcp& tcp() const { return *tcp_; }

 private:
  std::unique_ptr<Tcp> tcp_;
  int port_ = 0;
};

}  // namespace hexad::refit
