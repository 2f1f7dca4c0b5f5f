// A table of chunks (row groups, record batches), which are read when a row of theirs is asked for.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/record_batch.h>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {

using Batch = std::shared_ptr<arrow::RecordBatch>;

class ChunkedTable : public Table {
 public:
  int64_t size() const override { return begins_.back(); }
  void append_row(int64_t index, std::string& out) override;

 protected:
  ChunkedTable() : begins_{0} {}
  // Throws Refused for a number of rows that can be none.
  void add_chunk(int64_t rows);
  // The chunk, of as many rows as add_chunk has been told of.
  virtual Batch chunk(size_t index) = 0;

 private:
  std::vector<int64_t> begins_;  // the first row of each chunk, and behind the last the number of rows
};

// Batches that are there, in memory or mapped from `file`. One that a file holds is looked at when it is first used:
// its offsets may lead anywhere. Where the file has become shorter, a row of it would be a SIGBUS: so it is compared
// before each row, and only what happens to it in the microseconds after that ends the process all the same.
class BatchTable : public ChunkedTable {
 public:
  BatchTable(std::vector<Batch> batches, int64_t memory);
  // `outside`: bytes of them that are not mapped.
  BatchTable(std::vector<Batch> batches, int64_t outside, std::string file, const Stamp& stamp);
  int64_t memory() const override { return memory_; }

 protected:
  Batch chunk(size_t index) override;

 private:
  std::vector<Batch> batches_;
  int64_t memory_;
  std::string file_;  // "": none
  Stamp stamp_;
  std::vector<bool> checked_;
};

}  // namespace hexad::table::arrow_files
