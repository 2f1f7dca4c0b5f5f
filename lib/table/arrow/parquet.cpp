#include <algorithm>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include "lib/table/arrow/kept.hpp"
#include "lib/table/arrow/recent.hpp"
#include "lib/table/arrow/value.hpp"

namespace hexad::table::arrow_files {
namespace {

// Row groups of more bytes are not decoded whole to take one row out of them.
constexpr int64_t kLargeGroup = int64_t{64} << 20;
constexpr int64_t kManyRows =
    1 << 16;  // the bytes above are encoded: a text that repeats may be hundreds of times more

using Metadata = std::shared_ptr<parquet::FileMetaData>;

// `metadata`: what the file ends with, where it is known; null: it is read.
std::unique_ptr<parquet::arrow::FileReader> open_file(const std::string& name, const Metadata& metadata = nullptr) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // a column of a large group is read in parts
  parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
  constexpr int64_t kRows = 4096;  // of a batch, where a whole file is read
  arrow_properties.set_batch_size(kRows);
  arrow_properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(take(arrow::io::ReadableFile::Open(name, pool)), properties, metadata));
  return take(builder.memory_pool(pool)->properties(arrow_properties)->Build());
}

// All rows of a file, which it holds open.
class WholeFile : public arrow::RecordBatchReader {
 public:
  explicit WholeFile(const std::string& name) : file_(open_file(name)), batches_(take(file_->GetRecordBatchReader())) {}
  std::shared_ptr<arrow::Schema> schema() const override { return batches_->schema(); }
  arrow::Status ReadNext(Batch* batch) override { return batches_->ReadNext(batch); }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
};

// Row groups are decoded when a row of theirs is asked for. The file is not held open: there may be thousands.
class ParquetTable : public ChunkedTable {
 public:
  ParquetTable(const Source& source, Metadata metadata)
      : file_(source.file), stamp_(source.stamp), metadata_(std::move(metadata)) {
    for (int i = 0; i < metadata_->num_row_groups(); ++i) add_chunk(metadata_->RowGroup(i)->num_rows());
  }
  ParquetTable(const ParquetTable&) = delete;
  ParquetTable& operator=(const ParquetTable&) = delete;
  ~ParquetTable() override { RecentChunks::instance().forget(this); }

 protected:
  Batch chunk(size_t index) override {
    return RecentChunks::instance().get(this, index, [&] { return decode(index); });
  }

 private:
  Batch decode(size_t index) const {
    require_same(file_, stamp_);
    const auto table = take(open_file(file_, metadata_)->ReadRowGroup(static_cast<int>(index)));
    if (table->num_rows() != rows_of(index))
      throw Refused("it is damaged: row group " + std::to_string(index) + " has another number of rows than it says");
    return take(table->CombineChunksToBatch(arrow::system_memory_pool()));
  }

  std::string file_;
  Stamp stamp_;
  Metadata metadata_;  // a draw would parse it again: it grows with the number of row groups
};

}  // namespace

std::unique_ptr<Table> open_parquet(const Source& source) {
  const auto file = open_file(source.file);
  std::shared_ptr<arrow::Schema> schema;
  check(file->GetSchema(&schema));
  check_schema(*schema);
  const Metadata metadata = file->parquet_reader()->metadata();
  int64_t largest = 0, most_rows = 0;
  for (int i = 0; i < metadata->num_row_groups(); ++i) {
    largest = std::max(largest, metadata->RowGroup(i)->total_byte_size());
    most_rows = std::max(most_rows, metadata->RowGroup(i)->num_rows());
  }
  if (largest <= kLargeGroup && most_rows <= kManyRows) return std::make_unique<ParquetTable>(source, metadata);
  if (auto table = kept(source)) return table;
  return keep(source, [&] { return std::make_shared<WholeFile>(source.file); });
}

}  // namespace hexad::table::arrow_files
