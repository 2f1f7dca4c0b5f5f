#include "lib/table/arrow/kept.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/memory_pool.h>
#include <arrow/util/byte_size.h>

#include "lib/table/arrow/chunked.hpp"
#include "lib/table/arrow/ipc.hpp"
#include "lib/table/part.hpp"

namespace hexad::table::arrow_files {
namespace {

// The rows as batches; nothing where they are more than `most` bytes.
std::optional<std::vector<Batch>> few(arrow::RecordBatchReader& reader, int64_t most, int64_t& bytes) {
  std::vector<Batch> batches;
  while (Batch batch = take(reader.Next())) {
    bytes += arrow::util::TotalBufferSize(*batch);
    if (bytes > most) return std::nullopt;
    if (batch->num_rows() > 0) batches.push_back(std::move(batch));
  }
  return batches;
}

void write(arrow::RecordBatchReader& reader, const std::string& file) {
  const auto out = take(arrow::io::FileOutputStream::Open(file));
  const auto writer = take(arrow::ipc::MakeStreamWriter(out, reader.schema()));
  while (const Batch batch = take(reader.Next())) {
    if (batch->num_rows() > 0) check(writer->WriteRecordBatch(*batch));
  }
  check(writer->Close());
  check(out->Close());
}

// A stream that was cut behind one of its batches reads as a shorter one: what we have written ends with the mark of an
// end.
void require_end(const std::string& file) {
  constexpr std::string_view kEnd("\xff\xff\xff\xff\0\0\0\0", 8);
  const auto in = take(arrow::io::ReadableFile::Open(file, arrow::system_memory_pool()));
  const int64_t begin = std::max<int64_t>(0, take(in->GetSize()) - std::ssize(kEnd));
  const auto end = take(in->ReadAt(begin, std::ssize(kEnd)));
  if (std::string_view(*end) != kEnd) throw Refused("it was cut");
}

}  // namespace

std::unique_ptr<Table> keep(const Source& source, const std::function<Reader()>& read) {
  int64_t bytes = 0;
  if (auto batches = few(*read(), source.memory, bytes)) {
    require_same(source.file, source.stamp);
    return std::make_unique<BatchTable>(std::move(*batches), bytes);
  }
  if (source.prepare(source.to) != 0) throw Refused("its rows do not fit into memory, and cannot be kept in a file");
  const std::string cache = source.cache;
  const auto refuse = [&](const std::string& reason) {
    throw Refused("its rows cannot be kept as " + cache + " (HEXAD_CACHE names another folder): " + reason);
  };
  const Part part(cache);
  try {
    write(*read(), part.path());
  } catch (const Refused& refused) {
    refuse(refused.what());
  }
  require_same(source.file, source.stamp);
  if (const int reason = part.rename(); reason != 0) refuse(std::strerror(reason));
  return mapped_table(cache);
}

std::unique_ptr<Table> kept(const Source& source) {
  if (*source.cache == '\0' || ::access(source.cache, F_OK) != 0) return nullptr;
  try {
    require_end(source.cache);
    return mapped_table(source.cache);
  } catch (const Refused&) {  // whoever reads it already keeps what he has mapped
    ::unlink(source.cache);
    return nullptr;
  }
}

}  // namespace hexad::table::arrow_files
