// Work in a process of its own, so that its memory and descriptors are its alone.
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace hexad::bridge_overhead {

using Json = nlohmann::ordered_json;

// Forks: no thread may run yet. What `work` returns; throws std::runtime_error with what it threw.
inline Json apart(const std::function<Json()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe to a process");
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("a process cannot be started");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Json result;
    try {
      result = work();
    } catch (const std::exception& error) {
      result = {{"error", error.what()}};
    }
    const std::string text = result.dump();
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::write(ends[1], text.data() + sent, text.size() - sent);
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char bytes[65536];
  for (ssize_t count; (count = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(count));
  ::close(ends[0]);
  ::waitpid(process, nullptr, 0);
  const Json result = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (result.is_discarded()) throw std::runtime_error("a process has ended without an answer");
  if (result.contains("error")) throw std::runtime_error(result["error"].get<std::string>());
  return result;
}

}  // namespace hexad::bridge_overhead
