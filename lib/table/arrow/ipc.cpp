#include "lib/table/arrow/ipc.hpp"

#include <optional>
#include <string_view>
#include <vector>

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/util/byte_size.h>

#include "lib/table/arrow/chunked.hpp"
#include "lib/table/arrow/kept.hpp"
#include "lib/table/arrow/value.hpp"

namespace hexad::table::arrow_files {
namespace {

using Mapped = std::shared_ptr<arrow::io::MemoryMappedFile>;

arrow::ipc::IpcReadOptions options() {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.memory_pool = arrow::system_memory_pool();
  return options;
}

// The batches of the file format one after the other.
class FileBatches : public arrow::RecordBatchReader {
 public:
  explicit FileBatches(std::shared_ptr<arrow::ipc::RecordBatchFileReader> file) : file_(std::move(file)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return file_->schema(); }
  arrow::Status ReadNext(Batch* batch) override {
    batch->reset();
    if (next_ == file_->num_record_batches()) return arrow::Status::OK();
    return file_->ReadRecordBatch(next_++).Value(batch);
  }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> file_;
  int next_ = 0;
};

// Those of the stream format. A length of zero ends it, and so would a tail of zeros that a cut download or a power cut
// has left.
class StreamBatches : public arrow::RecordBatchReader {
 public:
  StreamBatches(Mapped file, Reader stream) : file_(std::move(file)), stream_(std::move(stream)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return stream_->schema(); }
  arrow::Status ReadNext(Batch* batch) override {
    ARROW_RETURN_NOT_OK(stream_->ReadNext(batch));
    if (*batch) return arrow::Status::OK();
    ARROW_ASSIGN_OR_RAISE(const int64_t end, file_->Tell());
    ARROW_ASSIGN_OR_RAISE(const int64_t size, file_->GetSize());
    return end < size ? arrow::Status::Invalid("bytes lie behind the end of its rows") : arrow::Status::OK();
  }

 private:
  Mapped file_;
  Reader stream_;
};

Mapped map_file(const std::string& file) {
  return take(arrow::io::MemoryMappedFile::Open(file, arrow::io::FileMode::READ));
}

Reader batches_of(const Mapped& file) {
  constexpr std::string_view kFileFormat = "ARROW1";
  const int64_t size = take(file->GetSize());
  const auto start = take(file->ReadAt(0, std::min<int64_t>(size, static_cast<int64_t>(kFileFormat.size()))));
  if (std::string_view(*start) == kFileFormat)
    return std::make_shared<FileBatches>(take(arrow::ipc::RecordBatchFileReader::Open(file, options())));
  return std::make_shared<StreamBatches>(file, take(arrow::ipc::RecordBatchStreamReader::Open(file, options())));
}

// Batches that are whole: those of a file are looked at first, for the writer believes their offsets.
class Checked : public arrow::RecordBatchReader {
 public:
  explicit Checked(Reader reader) : reader_(std::move(reader)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status ReadNext(Batch* batch) override {
    ARROW_RETURN_NOT_OK(reader_->ReadNext(batch));
    return *batch ? (*batch)->ValidateFull() : arrow::Status::OK();
  }

 private:
  Reader reader_;
};

// What the batches hold beyond the map: of a compressed file all.
int64_t bytes_outside(const Batch& batch, const arrow::Buffer& map) {
  const auto is_inside = [&](const uint8_t* at) { return at >= map.data() && at < map.data() + map.size(); };
  std::vector<const arrow::ArrayData*> todo;
  for (const auto& column : batch->column_data()) todo.push_back(column.get());
  int64_t bytes = 0;
  while (!todo.empty()) {
    const arrow::ArrayData& data = *todo.back();
    todo.pop_back();
    for (const auto& buffer : data.buffers) bytes += buffer && !is_inside(buffer->data()) ? buffer->size() : 0;
    for (const auto& child : data.child_data) todo.push_back(child.get());
    if (data.dictionary) todo.push_back(data.dictionary.get());
  }
  return bytes;
}

// The file's batches as they lie in it; nothing where more than `most` bytes of them lie elsewhere.
std::unique_ptr<Table> mapped(const std::string& name, int64_t most) {
  const Stamp stamp = stamp_of(name);
  const Mapped file = map_file(name);
  const int64_t size = take(file->GetSize());
  if (size == 0) throw Refused("it is empty");
  const auto whole = take(file->ReadAt(0, size));
  const Reader reader = batches_of(file);
  check_schema(*reader->schema());
  std::vector<Batch> batches;
  int64_t outside = 0;
  while (Batch batch = take(reader->Next())) {
    outside += bytes_outside(batch, *whole);
    if (outside > most) return nullptr;
    if (batch->num_rows() > 0) batches.push_back(std::move(batch));
  }
  return std::make_unique<BatchTable>(std::move(batches), outside, name, stamp);
}

}  // namespace

std::unique_ptr<Table> mapped_table(const std::string& file) {
  constexpr int64_t kAll = int64_t{1} << 62;
  return mapped(file, kAll);
}

std::unique_ptr<Table> open_ipc(const Source& source) {
  if (auto table = mapped(source.file, source.memory)) return table;
  if (auto table = kept(source)) return table;
  return keep(source, [&] { return std::make_shared<Checked>(batches_of(map_file(source.file))); });
}

}  // namespace hexad::table::arrow_files
