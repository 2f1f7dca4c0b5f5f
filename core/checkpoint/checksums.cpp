#include "core/checkpoint/checksums.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/sha256.hpp"

namespace hexad::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMostThreads = 8;

FileSum sum_of(const fs::path& file, bool sha256) {
  FileSum sum;
  if (!sha256) return {fs::file_size(file), ""};
  InputFile in(file);
  Sha256 digest;
  std::vector<char> part(1 << 20);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0) {
    digest.add(std::as_bytes(std::span(part)).first(static_cast<size_t>(in.gcount())));
    sum.bytes += static_cast<uint64_t>(in.gcount());
  }
  sum.sha256 = digest.hex();
  return sum;
}

// work(i) of each i below `count`, on threads of their own: a step that runs meanwhile has the cores first.
void in_background(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = 0; (i = next++) < count;) work(i);
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < std::min({count, cores, kMostThreads}))
      threads.emplace_back([&] {
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);  // of this thread alone
        run();
      });
  } catch (const std::system_error&) {  // a limit of the system: with those that there are
    if (threads.empty()) run();
  }
}

std::string damage_of(const fs::path& file, const FileSum& saved) {
  try {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable) && !unreadable) return "is missing";
    const uint64_t bytes = fs::file_size(file);
    if (bytes != saved.bytes) return fmt::format("has {} bytes, {} were saved", bytes, saved.bytes);
    if (saved.sha256.empty()) return "";
    const std::string sha256 = sum_of(file, true).sha256;
    return sha256 == saved.sha256 ? "" : fmt::format("has sha256 {}, saved was {}", sha256, saved.sha256);
  } catch (const std::exception& error) {
    return fmt::format("cannot be read ({})", error.what());
  }
}

}  // namespace

bool has_checksums(const FileSums& sums) {
  return std::ranges::any_of(sums, [](const auto& file) { return !file.second.sha256.empty(); });
}

Json to_json(const FileSums& sums) {
  Json json = Json::object();
  for (const auto& [path, sum] : sums) {
    json[path]["bytes"] = sum.bytes;
    if (!sum.sha256.empty()) json[path]["sha256"] = sum.sha256;
  }
  return json;
}

FileSums sums_from(const Json& json) {
  FileSums sums;
  for (const auto& [path, sum] : json.items())
    sums[path] = {sum.at("bytes").get<uint64_t>(), sum.value("sha256", std::string())};
  return sums;
}

FileSums sums_of(const fs::path& directory, bool sha256) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries_below(directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::vector<FileSum> sums(files.size());
  std::vector<std::string> errors(files.size());
  in_background(files.size(), [&](size_t i) {
    try {
      sums[i] = sum_of(files[i], sha256);
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  });
  FileSums result;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!errors[i].empty()) throw Error(ErrorKind::data, errors[i]);
    result[files[i].lexically_relative(directory).string()] = std::move(sums[i]);
  }
  return result;
}

std::vector<std::string> damage(const fs::path& directory, const FileSums& saved) {
  const std::vector<std::pair<std::string, FileSum>> files(saved.begin(), saved.end());
  std::vector<std::string> lines(files.size());
  in_background(files.size(), [&](size_t i) {
    const std::string what = damage_of(directory / files[i].first, files[i].second);
    if (!what.empty()) lines[i] = files[i].first + " " + what;
  });
  std::erase(lines, "");
  return lines;
}

}  // namespace hexad::checkpoint
