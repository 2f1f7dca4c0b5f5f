// Rows that do not fit into memory are kept in files.
#include "lib/table/cache.hpp"

#include <sys/stat.h>

#include <chrono>

#include "lib/base/file.hpp"
#include "lib/table/arrow_library.hpp"
#include "lib/table/arrow_rows.hpp"
#include "lib/table/json_file.hpp"
#include "lib/table/packed_text.hpp"
#include "tests/lib/table/support.hpp"

using namespace hexad;
using namespace table_test;

namespace {

// Rows of a file of which none may stay in memory.
std::vector<std::string> kept_rows(const fs::path& file) {
  table::Budget none{0};
  const table::Container container = *table::container_of(file);
  if (container.form == table::Form::json)
    return texts(*table::json_rows(table::unpacked_bytes(file, container.packing, none), file));
  return texts(*table::arrow_rows(file, container, none));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("CSV, compressed Arrow and packed files are kept once, with the rows that they have in memory") {
  if (!has_arrow()) return;
  for (const char* name : {"flat.csv", "flat.tsv.zst", "lz4.arrow", "rows.jsonl.gz", "rows.json.zst"}) {
    CAPTURE(name);
    const toy::TempDir dir;
    const Variable cache("HEXAD_CACHE", dir.path().string());
    const std::vector<std::string> wanted = texts(*table::open_file(data_file(name)));
    CHECK_FALSE(fs::exists(dir / "tables"));
    CHECK(kept_rows(data_file(name)) == wanted);
    REQUIRE(files_in(dir / "tables").size() == 1);
    struct stat status {};
    REQUIRE(::stat((dir / "tables").c_str(), &status) == 0);
    CHECK((status.st_mode & 077) == 0);
    const auto written = fs::last_write_time(files_in(dir / "tables")[0]);
    CHECK(kept_rows(data_file(name)) == wanted);
    CHECK(texts(*table::open_file(data_file(name))) == wanted);
    REQUIRE(files_in(dir / "tables").size() == 1);
    CHECK(fs::last_write_time(files_in(dir / "tables")[0]) == written);
  }
}

TEST_CASE("a file that has changed is kept anew, and what is left of it or half-written goes") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const Variable cache("HEXAD_CACHE", (dir / "cache").string());
  const fs::path file = dir.write("a.csv", "a,b\n1,x\n");
  CHECK(kept_rows(file) == std::vector<std::string>{R"({"a":1,"b":"x"})"});
  const fs::path other = dir.write("cache/tables/other.1.part", ""), fresh = dir.write("cache/tables/new.1.part", "");
  fs::last_write_time(other, fs::file_time_type::clock::now() - std::chrono::hours(2));
  dir.write("a.csv", "a,b\n1,x\n2,y\n");
  CHECK(kept_rows(file).size() == 2);
  CHECK_FALSE(fs::exists(other));
  CHECK(fs::exists(fresh));
  CHECK(files_in(dir / "cache/tables").size() == 2);
}

TEST_CASE("kept rows that were cut are made anew") {
  if (!has_arrow()) return;
  for (const char* name : {"many/rows.csv", "many/rows.jsonl.gz", "lz4.arrow"}) {
    CAPTURE(name);
    const toy::TempDir dir;
    const Variable cache("HEXAD_CACHE", dir.path().string());
    const std::vector<std::string> wanted = kept_rows(data_file(name));
    const fs::path kept = files_in(dir / "tables").at(0);
    const std::string whole = read_file(kept);
    for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 20) {
      CAPTURE(length);
      write_file(kept, whole.substr(0, length));
      CHECK(kept_rows(data_file(name)) == wanted);
      CHECK(read_file(kept) == whole);
    }
  }
}

TEST_CASE("who reads kept rows goes on where another run has removed them") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const Variable cache("HEXAD_CACHE", dir.path().string());
  table::Budget none{0};
  const fs::path file = data_file("many/rows.csv"), packed = data_file("many/rows.jsonl.gz");
  const auto rows = table::arrow_rows(file, *table::container_of(file), none);
  const auto made = table::json_rows(table::unpacked_bytes(packed, table::Packing::gz, none), packed);
  const auto found = table::json_rows(table::unpacked_bytes(packed, table::Packing::gz, none), packed);
  fs::remove_all(dir / "tables");
  for (const table::Rows* each : {rows.get(), made.get(), found.get()}) CHECK(each->row(199).value.at("answer") == "h");
}

TEST_CASE("what is kept of a file is of one form: a link of another name does not find it, nor remove it") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const Variable cache("HEXAD_CACHE", (dir / "cache").string());
  const fs::path file = dir.write("a.csv", "a\tb,c\n1\t2,3\n"), link = dir / "a.tsv";
  fs::create_symlink(file, link);
  CHECK(kept_rows(file) == std::vector<std::string>{R"({"a\tb":"1\t2","c":3})"});
  CHECK(kept_rows(link) == std::vector<std::string>{R"({"a":1,"b,c":"2,3"})"});
  CHECK(files_in(dir / "cache/tables").size() == 2);
  dir.write("a.csv", "a,b\n1,10\n");
  CHECK(kept_rows(file).size() == 1);
  CHECK(files_in(dir / "cache/tables").size() == 1);
}

TEST_CASE("a file that changes between two readings is refused, and nothing of it is kept") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const fs::path file = dir.write("a.csv", "a,b\n1,x\n"), kept = dir / "kept.arrow";
  struct Change {
    const toy::TempDir& dir;
    std::string said;
  } change{dir, ""};
  const std::string path = file, place = kept;
  // Called when the file has been read once. One with other columns must not be read as those that were seen.
  const auto rewrite = [](void* to) {
    static_cast<Change*>(to)->dir.write("a.csv", "a,b\n1,x\n2,yy\n");
    return 0;
  };
  const auto widen = [](void* to) {
    static_cast<Change*>(to)->dir.write("a.csv", "a,b,c,d\n1,x,true,true\n");
    return 0;
  };
  const auto say = [](void* to, const char* bytes, size_t size) {
    static_cast<Change*>(to)->said.append(bytes, size);
    return 0;
  };
  for (int (*const between)(void*) : {+rewrite, +widen}) {
    dir.write("a.csv", "a,b\n1,x\n");
    change.said.clear();
    const hexad_arrow_source source{path.c_str(), "csv", "", place.c_str(), /*memory=*/0, between};
    CHECK(table::arrow_for(file).open(&source, say, &change) == nullptr);
    SAYS(change.said, "it has been written anew since it was opened");
    CHECK(files_in(dir.path()) == std::vector<fs::path>{file});
  }
}

TEST_CASE("where rows cannot be kept the reason is said, and nothing half-written stays") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const auto refused = [&](const char* name) { return refusal([&] { kept_rows(data_file(name)); }); };
  {
    const Variable cache("HEXAD_CACHE", dir.write("file", "").string());
    SAYS(refused("flat.csv"), "its rows do not fit into memory, and cannot be kept in a file (");
    SAYS(refused("rows.jsonl.gz"), "rows.jsonl.gz: cannot be unpacked: ");
  }
  {
    const Variable own("HEXAD_CACHE", std::nullopt), all("XDG_CACHE_HOME", std::nullopt), home("HOME", std::nullopt);
    SAYS(refused("flat.csv"), "(there is no folder for them: neither HEXAD_CACHE nor HOME is set)");
  }
  const Variable cache("HEXAD_CACHE", dir.path().string());
  fs::create_directories(dir / "tables");
  ::chmod((dir / "tables").c_str(), 0777);
  SAYS(refused("flat.csv"), "is open to others (mode 0777), wanted 0700");
  ::chmod((dir / "tables").c_str(), 0700);
  const fs::path cut = dir.write("cut.jsonl.gz", read_file(data_file("rows.jsonl.gz")).substr(0, 200));
  SAYS(refusal([&] { kept_rows(cut); }), "cut.jsonl.gz: cannot be unpacked");
  CHECK(files_in(dir / "tables").empty());
}

TEST_CASE("a file that is written anew while its rows are read is refused") {
  const toy::TempDir dir;
  std::vector<fs::path> files = {dir.write("a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n")};
  if (has_arrow()) {
    files.push_back(dir.write("a.parquet", read_file(data_file("rows.parquet"))));
    files.push_back(dir.write("a.arrow", read_file(data_file("stream.arrow"))));  // mapped: reading it would be SIGBUS
  }
  for (const fs::path& file : files) {
    const auto rows = table::open_file(file);
    dir.write(file.filename(), "{\"a\": 1}\n{\"a\": 22}\n");
    SAYS(refusal([&] { rows->row(1); }), "it has been written anew since it was opened");
  }
}

TEST_CASE("a file that shows another inode, as FUSE's may, is the same by its size and time of change") {
  const toy::TempDir dir;
  std::vector<fs::path> files = {dir.write("a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n")};
  if (has_arrow()) files.push_back(dir.write("a.parquet", read_file(data_file("rows.parquet"))));
  for (const fs::path& file : files) {
    const auto rows = table::open_file(file);
    const fs::path copy = dir.write("copy", read_file(file));
    fs::last_write_time(copy, fs::last_write_time(file));
    fs::rename(copy, file);
    CHECK(refusal([&] { rows->row(1); }) == "");
  }
}
