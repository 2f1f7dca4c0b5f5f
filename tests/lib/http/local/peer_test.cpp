// Whose a connection is, of what the kernel lists.
#include "lib/http/local/peer.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

using namespace hexad::http;
namespace fs = std::filesystem;

namespace {

constexpr End kServer = {.address = 0x7f000001, .port = 8080};

// What `proc` would list.
struct Listed {
  Listed(const std::string& tcp, const std::string& tcp6) {
    std::string name = (fs::temp_directory_path() / "hexad-peer-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    proc = name;
    fs::create_directory(proc / "net");
    std::ofstream(proc / "net/tcp") << "  sl  local_address rem_address   st tx_queue rx_queue ...\n" << tcp;
    if (!tcp6.empty()) std::ofstream(proc / "net/tcp6") << "  sl  local_address\n" << tcp6;
  }
  ~Listed() { fs::remove_all(proc); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  fs::path proc;
};

std::string line(const std::string& from, const std::string& to, int user) {
  return "   1: " + from + " " + to + " 01 00000000:00000000 00:00000000 00000000  " + std::to_string(user) +
         "        0 640 1 0 100 0 0 10 0\n";
}

}  // namespace

TEST_CASE("the user of the socket at the other end, not of ours") {
  const Listed listed(line("0100007F:1F90", "0100007F:C350", 1) + line("0100007F:C351", "0100007F:1F90", 2) +
                          line("0100007F:C350", "0100007F:1F90", 1000),
                      "");
  CHECK(user_of({0x7f000001, 50000}, kServer, listed.proc) == 1000);
  CHECK(user_of({0x7f000001, 50001}, kServer, listed.proc) == 2);
  CHECK_FALSE(user_of({0x7f000001, 50002}, kServer, listed.proc));
}

TEST_CASE("a socket of IPv6 that speaks IPv4") {
  const std::string before = "0000000000000000FFFF0000";
  const Listed listed("", line(before + "0100007F:C350", before + "0100007F:1F90", 1000));
  CHECK(user_of({0x7f000001, 50000}, kServer, listed.proc) == 1000);
}

TEST_CASE("a kernel that lists nothing") { CHECK_FALSE(user_of({0x7f000001, 50000}, kServer, "/nowhere")); }
