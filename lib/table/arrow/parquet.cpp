#include <algorithm>
#include <utility>
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

// Of a group, rows that are decoded together: neighbours are read one after the other. A whole group would take memory
// that no row before it left behind, and to clear those pages takes longer than to decode them.
constexpr int64_t kTogether = 512;

using Metadata = std::shared_ptr<parquet::FileMetaData>;
using File = std::unique_ptr<parquet::arrow::FileReader>;

// `rows`: of a batch. `metadata`: what the file ends with, where it is known; null: it is read.
File open_file(const std::string& name, int64_t rows, const Metadata& metadata = nullptr) {
  arrow::MemoryPool* const pool = arrow::system_memory_pool();
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // a column of a large group is read in parts
  parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
  arrow_properties.set_batch_size(rows);
  arrow_properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(take(arrow::io::ReadableFile::Open(name, pool)), properties, metadata));
  return take(builder.memory_pool(pool)->properties(arrow_properties)->Build());
}

// All rows of a file, which it holds open.
class WholeFile : public arrow::RecordBatchReader {
 public:
  explicit WholeFile(const std::string& name)
      : file_(open_file(name, 4096)), batches_(take(file_->GetRecordBatchReader())) {}
  std::shared_ptr<arrow::Schema> schema() const override { return batches_->schema(); }
  arrow::Status ReadNext(Batch* batch) override { return batches_->ReadNext(batch); }

 private:
  File file_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
};

// The parts of a row group (kTogether rows, the last one fewer) in their order.
class Group {
 public:
  Group(const std::string& file, const Metadata& metadata, int index)
      : index_(index),
        rows_(metadata->RowGroup(index)->num_rows()),
        file_(open_file(file, kTogether, metadata)),
        batches_(take(file_->GetRecordBatchReader({index}))) {}

  int index() const { return index_; }
  int64_t coming() const { return coming_; }  // the part that next() gives
  Batch next() {
    const int64_t wanted = std::min(kTogether, rows_ - kTogether * coming_++);
    std::vector<Batch> pieces;  // several where a column has more bytes than an array holds
    int64_t rows = 0;
    while (rows < wanted) {
      Batch piece;
      check(batches_->ReadNext(&piece));
      if (!piece) break;
      rows += piece->num_rows();
      pieces.push_back(std::move(piece));
    }
    if (rows != wanted)
      throw Refused("it is damaged: row group " + std::to_string(index_) + " has another number of rows than it says");
    if (pieces.size() == 1) return std::move(pieces.front());
    return take(take(arrow::Table::FromRecordBatches(pieces))->CombineChunksToBatch(arrow::system_memory_pool()));
  }

 private:
  int index_;
  int64_t rows_, coming_ = 0;
  File file_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
};

// Parts of row groups are decoded when a row of theirs is asked for. One file at most is held open, that of the table
// which was read last: there may be thousands.
class ParquetTable : public ChunkedTable {
 public:
  ParquetTable(const Source& source, Metadata metadata)
      : file_(source.file), stamp_(source.stamp), metadata_(std::move(metadata)) {
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      const int64_t rows = metadata_->RowGroup(i)->num_rows();
      int64_t begin = 0;
      do {  // once at least: a number of rows that can be none is refused
        add_chunk(std::min(kTogether, rows - begin));
        places_.push_back({i, begin / kTogether});
      } while ((begin += kTogether) < rows);
    }
  }
  ParquetTable(const ParquetTable&) = delete;
  ParquetTable& operator=(const ParquetTable&) = delete;
  ~ParquetTable() override {
    RecentChunks::instance().forget(this);
    if (open().of == this) open() = {};
  }

 protected:
  Batch chunk(size_t index) override {
    return RecentChunks::instance().get(this, index, [&] { return decode(places_[index]); });
  }

 private:
  struct Place {
    int group;
    int64_t part;
  };
  struct Open {
    const ParquetTable* of = nullptr;
    std::unique_ptr<Group> group;
  };
  static Open& open() {
    static Open open;
    return open;
  }

  // Goes on behind what was decoded last, where the place lies there.
  Batch decode(Place place) const {
    require_same(file_, stamp_);
    Open mine = std::exchange(open(), {});  // nobody reads on where something throws
    if (mine.of != this || mine.group->index() != place.group || mine.group->coming() > place.part)
      mine = {this, std::make_unique<Group>(file_, metadata_, place.group)};
    while (mine.group->coming() < place.part) mine.group->next();
    Batch batch = mine.group->next();
    open() = std::move(mine);
    return batch;
  }

  std::string file_;
  Stamp stamp_;
  Metadata metadata_;  // a draw would parse it again: it grows with the number of row groups
  std::vector<Place> places_;
};

}  // namespace

std::unique_ptr<Table> open_parquet(const Source& source) {
  const File file = open_file(source.file, kTogether);
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
