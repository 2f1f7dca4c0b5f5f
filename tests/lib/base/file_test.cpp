// Whole files, whatever they say of their size.
#include "lib/base/file.hpp"

#include <doctest/doctest.h>

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "lib/base/error.hpp"

using hexad::read_file;

namespace {

std::string error_of(const std::filesystem::path& file) {
  try {
    read_file(file);
  } catch (const hexad::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a file is read whole") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("hexad_file_test_" + std::to_string(::getpid()));
  for (const size_t size : {0, 1, 16383, 16384, 16385, 1000000}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    hexad::write_file(file, bytes);
    CHECK(read_file(file) == bytes);
  }
  std::filesystem::remove(file);
}

TEST_CASE("a file that tells no size is read to its end, and what is no file is an error") {
  CHECK(read_file("/proc/self/status").find("VmRSS") != std::string::npos);
  CHECK(read_file("/dev/null") == "");
  CHECK(error_of("/proc") == "/proc: cannot be read: Is a directory");
  const auto regular = [](const char* name) -> std::string {
    try {
      return hexad::read_regular_file(name);
    } catch (const hexad::Error& error) {
      return error.what();
    }
  };
  CHECK(regular("/proc") == "/proc: not a regular file: Is a directory");
  CHECK(regular("/dev/null") == "/dev/null: not a regular file: No such device or address");
  CHECK(error_of("/no/such/file") == "/no/such/file: cannot be opened: No such file or directory");
}

TEST_CASE("a full disk and a used-up quota are known in any message, and nothing else is") {
  const auto of = [](int reason) {
    return "here: cannot be written: " + std::string(std::strerror(reason)) + "; more";
  };
  CHECK(hexad::tells_of_full_disk(of(ENOSPC)));
  CHECK(hexad::tells_of_full_disk(of(EDQUOT)));
  CHECK_FALSE(hexad::tells_of_full_disk(of(EIO)));
  CHECK_FALSE(hexad::tells_of_full_disk(""));
}
