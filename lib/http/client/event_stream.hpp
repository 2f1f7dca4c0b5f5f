// Server-sent events: the `data:` fields of a stream, whole, however its bytes are cut.
#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace hexad::http::client {

class EventStream {
 public:
  // `take` is called with the data of each event that is complete; false from it ends the call. Throws
  // std::runtime_error at an event of more than 64 MiB.
  void feed(std::string_view bytes, const std::function<bool(std::string_view data)>& take);

 private:
  std::string line_;  // begun
  std::string data_;  // of the event that is being read
};

}  // namespace hexad::http::client
