#include "lib/table/arrow/chunked.hpp"

#include <algorithm>

#include "lib/table/arrow/value.hpp"

namespace hexad::table::arrow_files {

void ChunkedTable::append_row(int64_t index, std::string& out) {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), index);
  const size_t which = static_cast<size_t>(after - begins_.begin()) - 1;
  const Batch batch = chunk(which);
  arrow_files::append_row(*batch, index - begins_[which], out);
}

void ChunkedTable::add_chunk(int64_t rows) {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (rows < 0 || rows > kMost - size())
    throw Refused("it is damaged: a part of it says that it has " + std::to_string(rows) + " rows");
  begins_.push_back(size() + rows);
}

BatchTable::BatchTable(std::vector<Batch> batches, int64_t memory)
    : batches_(std::move(batches)), memory_(memory), checked_(batches_.size(), true) {
  for (const Batch& batch : batches_) add_chunk(batch->num_rows());
}

BatchTable::BatchTable(std::vector<Batch> batches, int64_t outside, std::string file, const Stamp& stamp)
    : BatchTable(std::move(batches), outside) {
  file_ = std::move(file);
  stamp_ = stamp;
  checked_.assign(batches_.size(), false);
}

Batch BatchTable::chunk(size_t index) {
  if (!file_.empty()) require_same_bytes(file_, stamp_);
  if (!checked_[index]) {
    const arrow::Status status = batches_[index]->ValidateFull();
    if (!status.ok()) throw Refused("it is damaged: " + reason_of(status));
    checked_[index] = true;
  }
  return batches_[index];
}

}  // namespace hexad::table::arrow_files
