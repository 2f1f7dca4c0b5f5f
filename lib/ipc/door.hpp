// A TCP port that listens on one address, and can be shut to newcomers.
#pragma once
#include <cstdint>
#include <string>

namespace hexad::ipc {

// While it is shut, the kernel drops what newcomers send: they wait, and cost this process nothing. Connections that
// are there go on. A kernel that has no socket filters (some sandboxes) leaves it open.
class Door {
 public:
  // Listens at a free port of an IPv4 address; as many newcomers may wait to be accepted. Throws Error(worker).
  Door(const std::string& address, int waiting);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  int port() const;
  // The listening socket once more, for a library that accepts at it and closes it.
  int duplicate() const;

  void shut();
  void open();
  bool is_shut() const { return is_shut_; }
  // Shut once `count` connections that have not proven who they are reach `most`, until half of them have gone.
  void mind(int64_t count, int64_t most);

 private:
  int socket_;
  bool is_shut_ = false;
};

}  // namespace hexad::ipc
