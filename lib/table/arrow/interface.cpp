#include "lib/table/arrow/interface.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include "lib/table/arrow/packed.hpp"
#include "lib/table/arrow/table.hpp"

struct hexad_arrow_table {
  std::unique_ptr<hexad::table::arrow_files::Table> rows;
  std::string text;  // of the row that was asked for last
};

namespace hexad::table::arrow_files {

std::string reason_of(const arrow::Status& status) {
  std::string text = status.message();
  text.resize(std::min(text.size(), text.find("\n/")));  // where Arrow's debug builds name a line of theirs
  std::ranges::replace(text, '\n', ' ');
  return text;
}

namespace {

std::unique_ptr<Table> open_table(const Source& source) {
  const std::string_view form = source.form;
  if (form == "parquet") return open_parquet(source);
  if (form == "arrow") return open_ipc(source);
  return open_csv(source);
}

// Of whoever uses a table: tables share the chunks that were decoded last.
std::mutex turn;

// What `work` throws is said, and -1 returned.
template <typename Work>
int guarded(hexad_arrow_sink say, void* to, const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::bad_alloc&) {
    constexpr std::string_view kNoMemory = "there is not memory enough for what it says it holds";
    say(to, kNoMemory.data(), kNoMemory.size());
  } catch (const std::exception& error) {
    const std::string_view reason = error.what();
    say(to, reason.data(), reason.size());
  }
  return -1;
}

hexad_arrow_table* open(const hexad_arrow_source* source, hexad_arrow_sink say, void* to) {
  std::unique_ptr<hexad_arrow_table> table;
  guarded(say, to, [&] {
    table.reset(new hexad_arrow_table{open_table(Source{*source, to, stamp_of(source->file)}), {}});
  });
  return table.release();
}

int row(hexad_arrow_table* table, int64_t index, hexad_arrow_sink out, hexad_arrow_sink say, void* to) {
  return guarded(say, to, [&] {
    const std::lock_guard mine(turn);
    table->text.clear();
    table->rows->append_row(index, table->text);
    out(to, table->text.data(), table->text.size());
  });
}

void close(hexad_arrow_table* table) {
  const std::lock_guard mine(turn);
  delete table;
}

int unpack_file(const char* file, const char* packing, hexad_arrow_sink out, hexad_arrow_sink say, void* to) {
  return guarded(say, to, [&] { unpack(file, packing, out, to); });
}

}  // namespace
}  // namespace hexad::table::arrow_files

extern "C" __attribute__((visibility("default"))) const hexad_arrow_interface hexad_arrow_interface_1 = {
    hexad::table::arrow_files::open,
    [](const hexad_arrow_table* table) { return table->rows->size(); },
    [](const hexad_arrow_table* table) { return table->rows->memory(); },
    hexad::table::arrow_files::row,
    hexad::table::arrow_files::close,
    hexad::table::arrow_files::unpack_file,
};
