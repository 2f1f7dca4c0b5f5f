// Files that are cut, wrong or hostile: an error with the file and the reason, and no crash.
#include <sys/stat.h>

#include "lib/base/file.hpp"
#include "lib/table/arrow_library.hpp"
#include "tests/lib/table/support.hpp"

using namespace hexad;
using namespace table_test;

namespace {

// The copy of a file of data/, changed.
template <typename Change>
fs::path changed(const toy::TempDir& dir, const std::string& name, const Change& change) {
  std::string bytes = read_file(data_file(name));
  change(bytes);
  return dir.write(fs::path(name).filename(), bytes);
}

}  // namespace

TEST_CASE("columns that have no JSON, and files without rows, are refused by name") {
  if (!has_arrow()) return;
  const struct {
    const char *file, *said;
  } cases[] = {
      {"duration.parquet",
       "duration.parquet: cannot be read as parquet: column 'a' is of type duration[us], which has "
       "no JSON; leave it out, or make text of it"},
      {"union.arrow", "union.arrow: cannot be read as arrow: column 'a' is of type sparse_union<"},
      {"twice.parquet", "twice.parquet: cannot be read as parquet: column 'a' stands twice"},
      {"latin1.parquet",
       "latin1.parquet[1]: column 'messages.content': text that is not UTF-8; write it as UTF-8, or "
       "leave the column out"},
      {"no_rows.parquet", "no_rows.parquet: holds no rows"},
  };
  for (const auto& each : cases) SAYS(refusal_of(data_file("refused") / each.file), each.said);
}

TEST_CASE("bytes that are no text are null, and the rows beside them are read") {
  if (!has_arrow()) return;
  CHECK(texts(*table::open_file(data_file("refused/bytes.parquet"))) == std::vector<std::string>{R"({"a":null})"});
}

TEST_CASE("another format under the name is refused with the reason") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  SAYS(refusal_of(dir.write("a.parquet", "no parquet at all")), "a.parquet: cannot be read as parquet: Parquet magic");
  SAYS(refusal_of(dir.write("b.parquet", "")), "b.parquet: cannot be read as parquet: Parquet file size is 0 bytes");
  SAYS(refusal_of(dir.write("a.arrow", "")), "a.arrow: cannot be read as arrow: it is empty");
  SAYS(refusal_of(dir.write("b.arrow", "no arrow at all")), "b.arrow: cannot be read as arrow: ");
  SAYS(refusal_of(dir.write("a.jsonl.gz", "{\"a\": 1}\n")), "a.jsonl.gz: cannot be unpacked: ");
  SAYS(refusal_of(dir.write("a.jsonl.zst", "{\"a\": 1}\n")), "a.jsonl.zst: cannot be unpacked: ");
  SAYS(refusal_of(dir.write("a.csv", "")), "a.csv: holds no rows");
  SAYS(refusal_of(dir.write("f.csv", "\n")), "f.csv: cannot be read as csv: CSV parse error: Empty CSV file");
  SAYS(refusal_of(dir.write("b.csv", "a,b\n")), "b.csv: holds no rows");
  SAYS(refusal_of(dir.write("c.csv", "a,b\n1,2\n3\n")), "c.csv: cannot be read as csv: CSV parse error");
  SAYS(refusal_of(dir.write("d.csv", "a,a\n1,2\n")), "d.csv: cannot be read as csv: column 'a' stands twice");
  SAYS(refusal_of(dir.write("e.csv", "a\n\xff\n")), "e.csv: cannot be read as csv: ");
  SAYS(refusal_of(dir.write("lfs.parquet", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")),
       "lfs.parquet: it is Git LFS's pointer to the file");
  SAYS(refusal_of(dir.write("rows.txt", "x")), "rows.txt: no file of rows by its name; want .jsonl, .json, .csv");
  SAYS(refusal_of(dir / "none.parquet"), "none.parquet: cannot be opened: No such file or directory");
}

TEST_CASE("a file that was cut anywhere is refused, or has its first rows") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  for (const std::string name : {"rows.parquet", "stream.arrow", "file.arrow", "lz4.arrow", "typed.arrow",
                                 "rows.jsonl.gz", "rows.json.zst", "flat.csv.gz"}) {
    const size_t size = read_file(data_file(name)).size();
    for (size_t length = 0; length < size; length += 1 + size / 60) {
      CAPTURE(name);
      CAPTURE(length);
      const std::string refused = refusal_of(changed(dir, name, [&](std::string& bytes) { bytes.resize(length); }));
      // The stream of IPC may end behind any batch.
      if (fs::path(name).extension() != ".arrow") SAYS(refused, name);
    }
  }
}

TEST_CASE("a stream whose tail is zeros is refused, and not taken for a shorter one") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  const fs::path file = changed(dir, "stream.arrow", [](std::string& bytes) { bytes += std::string(4096, '\0'); });
  SAYS(refusal_of(file), "stream.arrow: cannot be read as arrow: ");
  SAYS(refusal_of(file), "bytes lie behind the end of its rows");
}

TEST_CASE("a byte that is another one is refused, or read as what it says, and does no harm") {
  if (!has_arrow()) return;
  const toy::TempDir dir;
  for (const std::string name :
       {"rows.parquet", "zstd.parquet", "stream.arrow", "file.arrow", "zstd.arrow", "typed.arrow"}) {
    const size_t size = read_file(data_file(name)).size();
    for (size_t at = 0; at < size; at += 7) {
      const std::string refused =
          refusal_of(changed(dir, name, [&](std::string& bytes) { bytes[at] = static_cast<char>(~bytes[at]); }));
      if (!refused.empty()) SAYS(refused, name);
    }
  }
}

TEST_CASE("a pipe under a file's name is refused, and nobody waits for its writer") {
  const toy::TempDir dir;
  const fs::path pipe = dir / "rows.jsonl";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto open_files = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_files();
  SAYS(refusal_of(pipe), "rows.jsonl: no regular file, want one of rows");
  CHECK(open_files() == before);
}

TEST_CASE("without Arrow a file that it reads is refused with what to install") {
  const toy::TempDir dir;
  const auto refused = [&](const fs::path& library) {
    return refusal([&] { table::load_arrow(library, "train.parquet"); });
  };
  SAYS(refused(dir / "libhexad_arrow.so"),
       "train.parquet: such files are read by Apache Arrow, and this Hexad was built "
       "without it: no " +
           (dir / "libhexad_arrow.so").string() +
           ". tools/setup.sh installs it (of the wheel pyarrow, without Python)");
  SAYS(refused(dir.write("broken.so", "x")), "such files are read by Apache Arrow, which cannot be loaded: ");
  SAYS(refused("/usr/lib/x86_64-linux-gnu/libm.so.6"), "has no hexad_arrow_interface_1: it is not of this build");
}
