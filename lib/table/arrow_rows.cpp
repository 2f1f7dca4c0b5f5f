#include "lib/table/arrow_rows.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/table/arrow_library.hpp"
#include "lib/table/cache.hpp"

namespace hexad::table {
namespace {

namespace fs = std::filesystem;

int append(void* to, const char* bytes, size_t size) {
  static_cast<std::string*>(to)->append(bytes, size);
  return 0;
}

// The pointer that a clone without Git LFS leaves is named as that.
std::string hint_of(const fs::path& file) {
  std::string start(64, '\0');
  InputFile in(file);
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return std::string(lfs_hint(start));
}

// What the library says while it works.
struct Said {
  std::string text, reason;
  const Place* place = nullptr;

  static int take(void* said, const char* bytes, size_t size) {
    return append(&static_cast<Said*>(said)->text, bytes, size);
  }
  static int say(void* said, const char* bytes, size_t size) {
    return append(&static_cast<Said*>(said)->reason, bytes, size);
  }
  // The place is about to be used.
  static int prepare(void* to) {
    Said& said = *static_cast<Said*>(to);
    try {
      table::prepare(*said.place);
      return 0;
    } catch (const std::exception& error) {
      said.text = fmt::format(" ({})", error.what());
      return -1;
    }
  }
};

struct Close {
  const hexad_arrow_interface* arrow;
  void operator()(hexad_arrow_table* table) const { arrow->close(table); }
};

class ArrowRows : public Rows {
 public:
  ArrowRows(const fs::path& file, const Container& container, Budget& budget)
      : file_(file), arrow_(arrow_for(file)), table_(open(container, budget.left), Close{&arrow_}) {
    budget.left -= std::min(budget.left, arrow_.memory(table_.get()));
  }
  int64_t size() const override { return arrow_.size(table_.get()); }
  Row row(int64_t index) const override {
    const std::string source = fmt::format("{}[{}]", file_.string(), index);
    Said said;
    if (arrow_.row(table_.get(), index, Said::take, Said::say, &said) != 0)
      fail(ErrorKind::data, "{}: {}", source, said.reason);
    return {parse_data(said.text, source), source};
  }

 private:
  hexad_arrow_table* open(const Container& container, int64_t memory) const {
    const Place place = place_for(file_, container, ".arrow");
    const std::string file = file_.string(), kept = place.file.string();
    const hexad_arrow_source source{
        file.c_str(), name_of(container.form), name_of(container.packing), kept.c_str(), memory, Said::prepare};
    Said said;
    said.place = &place;
    if (hexad_arrow_table* const table = arrow_.open(&source, Said::say, &said)) return table;
    if (const std::string hint = hint_of(file_); !hint.empty()) fail(ErrorKind::data, "{}{}", file, hint);
    fail(ErrorKind::data, "{}: cannot be read as {}: {}{}", file, name_of(container.form), said.reason, said.text);
  }

  fs::path file_;
  const hexad_arrow_interface& arrow_;
  std::unique_ptr<hexad_arrow_table, Close> table_;
};

}  // namespace

std::unique_ptr<Rows> arrow_rows(const fs::path& file, const Container& container, Budget& budget) {
  return std::make_unique<ArrowRows>(file, container, budget);
}

}  // namespace hexad::table
