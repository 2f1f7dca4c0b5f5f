#include "lib/http/local/peer.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"

namespace hexad::http {
namespace {

// "0100007F:1F90" of 127.0.0.1:8080: the address as it lies in memory.
std::string listed(End end) { return fmt::format("{:08X}:{:04X}", htonl(end.address), end.port); }

// Fields are separated by blanks: "0:", from, to, state, queues, timer, retransmissions, user ...
std::optional<uid_t> user_in(const std::filesystem::path& table, const std::string& from, const std::string& to) {
  InputFile in(table);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string field[8];
    for (std::string& each : field) fields >> each;
    // In tcp6 an address of IPv4 stands behind 96 more bits.
    if (!field[1].ends_with(from) || !field[2].ends_with(to)) continue;
    uid_t user = 0;
    const auto [end, error] = std::from_chars(field[7].data(), field[7].data() + field[7].size(), user);
    if (error == std::errc()) return user;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uid_t> user_of(End from, End to, const std::filesystem::path& proc) {
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    try {
      if (const auto user = user_in(proc / table, listed(from), listed(to))) return user;
    } catch (const Error&) {  // a kernel without IPv6 has no tcp6
    }
  }
  return std::nullopt;
}

}  // namespace hexad::http
