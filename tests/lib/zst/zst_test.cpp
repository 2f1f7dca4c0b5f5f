// Files of lines: text or zstd, what is read of one that was cut, and the thread that writes them.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/zst/file_queue.hpp"
#include "lib/zst/frame.hpp"
#include "lib/zst/json_line.hpp"
#include "lib/zst/lines_file.hpp"
#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/zst_text.hpp"

using namespace hexad;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/hexad-zst-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path operator/(const std::string& name) const { return path / name; }
  fs::path path;
};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string line_of(int64_t i) { return std::to_string(i) + std::string(99, static_cast<char>('a' + i % 26)); }

std::string lines_of(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += line_of(i) + "\n";
  return text;
}

zst::WaitingFile waiting(const std::string& name, size_t bytes = 1) {
  return {name, 1, [name](int64_t) { return "of " + name; }, bytes};
}

}  // namespace

TEST_CASE("few lines are a file of text, many a frame that the program zstd reads") {
  const Folder folder;
  zst::write_lines(folder.path, "few", 100, line_of);
  CHECK(read_file(folder / "few") == lines_of(100));
  CHECK(zst::find_lines(folder / "few") == folder / "few");
  CHECK(zst::text_bytes(folder / "few") == lines_of(100).size());
  const std::string many = lines_of(30'000);
  REQUIRE(many.size() > 2 * zst::kMostPlainBytes);
  zst::write_lines(folder.path, "many", 30'000, line_of);
  const fs::path packed = folder / "many.zst";
  CHECK_FALSE(fs::exists(folder / "many"));
  CHECK(zst::find_lines(folder / "many") == packed);
  CHECK(fs::file_size(packed) < many.size() / 4);
  CHECK(test_support::text_of(packed, SIZE_MAX) == many);
  CHECK(test_support::text_of(packed, 1000) == many.substr(0, 1000));
  for (const auto& [file, count] : {std::pair(folder / "few", 100), std::pair(packed, 30'000)}) {
    int64_t next = 0;
    const auto take = [&](std::string_view line, int64_t most) { return line == line_of(next) && ++next < most; };
    zst::read_lines(file, [&](std::string_view line) { return take(line, count + 1); });
    CHECK(next == count);
    next = 0;
    zst::read_lines(file, [&](std::string_view line) { return take(line, 70); });
    CHECK(next == 70);
  }
  CHECK_FALSE(zst::find_lines(folder / "none"));
  const std::string command = fmt::format("zstd -dcq {} > {}", packed.string(), (folder / "read").string());
  if (std::system("command -v zstd > /dev/null") != 0) return test_report::skipped("no program zstd");
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(read_file(folder / "read") == many);
}

TEST_CASE("frames behind each other are read to the last that is whole, and of a damaged one what comes before") {
  const Folder folder;
  std::string bytes;
  size_t first = 0;
  for (const int part : {0, 1}) {
    zst::Frame frame([&](std::string_view more) { bytes += more; });
    frame.add(lines_of(10'000));
    frame.end();
    if (part == 0) first = bytes.size();
  }
  const auto text = [&](const std::string& of) {
    write_file(folder / "file", of);
    return test_support::text_of(folder / "file", SIZE_MAX);
  };
  const std::string once = lines_of(10'000);
  CHECK(text(bytes) == once + once);
  for (const size_t cut : {size_t{0}, first / 2, first - 1, first, first + 5, bytes.size() - 1}) {
    const std::string found = text(bytes.substr(0, cut));
    CHECK((once + once).starts_with(found));
    if (cut >= first) CHECK(found.size() >= once.size());
  }
  std::string damaged = bytes;
  damaged[first] = 'x';  // where the second begins
  CHECK(text(damaged) == once);
  CHECK(text("no frame").empty());
  write_file(folder / "cut.zst", bytes.substr(0, first / 2));
  std::string read;
  zst::read_lines(folder / "cut.zst", [&](std::string_view line) { return !read.append(line).append("\n").empty(); });
  CHECK((once + "\n").starts_with(read.substr(0, read.size() - 1)));  // the last line is a part of one
  SAYS(error_of([&] { test_support::text_of(folder / "absent", 1); }), "absent: cannot be opened");
}

TEST_CASE("a line has its lists behind its members, each number as short as reads back to the same") {
  const std::vector<int64_t> ids = {1, -2, int64_t{1} << 40};
  const std::vector<float> values = {0, 1, 0.1f, -1e-30f, NAN, INFINITY, 3.4028235e38f};
  const std::string text =
      zst::json_line({{"text", "a\n\xff"}, {"n", 1}},
                     {{"ids", ids}, {"values", values}, {"none", {}}, {"empty", {std::span<const float>()}}});
  CHECK(text ==
        "{\"text\":\"a\\n\xef\xbf\xbd\",\"n\":1,\"ids\":[1,-2,1099511627776],"
        "\"values\":[0,1,0.1,-1e-30,null,null,3.4028235e+38],\"none\":null,\"empty\":[]}");
  const auto read = parse_json<nlohmann::json>(text);
  for (const size_t i : {0, 1, 2, 3, 6}) CHECK(read.at("values")[i].get<float>() == values[i]);
}

TEST_CASE("a queue writes in order, and never lets its owner wait") {
  const Folder folder;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::atomic<int> made = 0;
  zst::FileQueue queue(folder.path);
  for (int i = 0; i < 3; ++i)
    queue.put({std::to_string(i), 2,
               [&, i, opened](int64_t line) {
                 opened.wait();
                 if (line == 0) CHECK(made++ == i);
                 return fmt::format("{} {}", i, line);
               },
               1});
  CHECK_FALSE(queue.wait(10ms));
  CHECK(queue.waiting() == 3);
  gate.set_value();
  CHECK(queue.wait(60s));
  CHECK(queue.waiting() == 0);
  for (int i = 0; i < 3; ++i) CHECK(read_file(folder / std::to_string(i)) == fmt::format("{0} 0\n{0} 1\n", i));
}

TEST_CASE("files that come faster than they are written: the oldest that wait are left out, and one warning says so") {
  const Folder folder;
  const test_support::Log spoken;
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::promise<void> begun;
  zst::FileQueue queue(folder.path, 100);
  queue.put({"first", 1,
             [&](int64_t) {
               begun.set_value();
               opened.wait();
               return std::string();
             },
             1000});
  begun.get_future().wait();
  for (const char* name : {"a", "b", "c", "d"}) queue.put(waiting(name, 60));
  gate.set_value();
  CHECK(queue.wait(60s));
  CHECK(fs::exists(folder / "first"));
  for (const char* name : {"a", "b", "c"}) CHECK_FALSE(fs::exists(folder / name));
  CHECK(read_file(folder / "d") == "of d\n");
  SAYS(spoken.text(),
       folder.path.string() + ": files come faster than they can be written: a is left out, and may not");
  CHECK(queue.left_out() == 0);
}

TEST_CASE("a full disk: files wait, the newest that fit, until there is room") {
  const Folder folder;
  zst::FileQueue queue(folder.path, 100);
  fs::create_symlink("/dev/full", folder / "a");
  queue.put(waiting("a", 60));
  CHECK(queue.wait(60s));
  SAYS(queue.no_room(), "No space left on device");
  CHECK(queue.waiting() == 1);
  CHECK_FALSE(fs::exists(fs::symlink_status(folder / "a")));
  queue.put(waiting("b", 60));
  queue.put(waiting("c", 30));
  CHECK(queue.wait(60s));  // it is not tried again by itself
  CHECK(queue.waiting() == 2);
  CHECK(queue.left_out() == 1);
  queue.retry();
  CHECK(queue.wait(60s));
  CHECK(queue.no_room().empty());
  CHECK(queue.waiting() == 0);
  CHECK_FALSE(fs::exists(folder / "a"));
  CHECK(read_file(folder / "b") == "of b\n");
  CHECK(read_file(folder / "c") == "of c\n");
}

TEST_CASE("another error is told once, by the next call") {
  const Folder folder;
  zst::FileQueue queue(folder.path);
  fs::create_directory(folder / "a");
  queue.put(waiting("a"));
  SAYS(error_of([&] { queue.wait(60s); }), "a: Is a directory");
  queue.put(waiting("b"));
  CHECK(queue.wait(60s));
  CHECK(read_file(folder / "b") == "of b\n");
}

TEST_CASE("the end of a queue does not wait for a file that hangs") {
  const Folder folder;
  const auto opened = std::make_shared<std::promise<void>>();
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  {
    zst::FileQueue queue(folder.path);
    queue.put({"hangs", 1,
               [begun, wait = opened->get_future().share()](int64_t) {
                 *begun = true;
                 return wait.wait(), std::string();
               },
               1});
    queue.put(waiting("later"));
    while (!*begun) std::this_thread::sleep_for(1ms);  // what has not begun at the end is not written
    CHECK_FALSE(queue.wait(10ms));
  }
  opened->set_value();
  for (int i = 0; i < 6000 && !fs::exists(folder / "hangs"); ++i) std::this_thread::sleep_for(10ms);
  CHECK(fs::exists(folder / "hangs"));
  CHECK_FALSE(fs::exists(folder / "later"));
}
