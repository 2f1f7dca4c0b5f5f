#include "lib/table/arrow/recent.hpp"

#include <algorithm>

#include <arrow/util/byte_size.h>

namespace hexad::table::arrow_files {

RecentChunks& RecentChunks::instance() {
  static RecentChunks chunks;
  return chunks;
}

Batch RecentChunks::get(const void* table, size_t index, const std::function<Batch()>& read) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.table == table && entry.index == index; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return found->batch;
  }
  Batch batch = read();
  const int64_t bytes = arrow::util::TotalBufferSize(*batch);
  entries_.push_front({table, index, batch, bytes});
  bytes_ += bytes;
  while (bytes_ > kMostBytes && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return batch;
}

void RecentChunks::forget(const void* table) {
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.table == table) bytes_ -= entry.bytes;
    return entry.table == table;
  });
}

}  // namespace hexad::table::arrow_files
