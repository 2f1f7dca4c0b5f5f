// The chunks of all tables that were read last, as many as fit.
#pragma once
#include <cstdint>
#include <functional>
#include <list>

#include "lib/table/arrow/chunked.hpp"

namespace hexad::table::arrow_files {

// One a process, and one thread at a time: two tables in use at once would go on decoding for each other.
class RecentChunks {
 public:
  static RecentChunks& instance();

  // That of `table`, or what `read` makes of it.
  Batch get(const void* table, size_t index, const std::function<Batch()>& read);
  void forget(const void* table);

 private:
  struct Entry {
    const void* table;
    size_t index;
    Batch batch;
    int64_t bytes;
  };
  static constexpr int64_t kMostBytes = int64_t{64} << 20;  // one that is larger stays alone

  std::list<Entry> entries_;  // the newest first
  int64_t bytes_ = 0;
};

}  // namespace hexad::table::arrow_files
