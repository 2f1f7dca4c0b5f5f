#include "lib/table/arrow/kept.hpp"

#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
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

}  // namespace

std::unique_ptr<Table> keep(const Source& source, const std::function<Reader()>& read) {
  int64_t bytes = 0;
  if (auto batches = few(*read(), source.memory, bytes))
    return std::make_unique<BatchTable>(std::move(*batches), bytes, /*are_checked=*/true);
  const std::string cache = source.cache;
  if (source.prepare(source.to) != 0) throw Refused("its rows do not fit into memory, and cannot be kept in a file");
  const Part part(cache);
  try {
    write(*read(), part.path());
    if (const int reason = part.rename(); reason != 0) throw Refused(std::strerror(reason));
  } catch (const Refused& refused) {
    throw Refused("its rows cannot be kept as " + cache + " (HEXAD_CACHE names another folder): " + refused.what());
  }
  return mapped_table(cache);
}

std::unique_ptr<Table> kept(const Source& source) {
  if (*source.cache == '\0' || ::access(source.cache, F_OK) != 0) return nullptr;
  try {
    return mapped_table(source.cache);
  } catch (const Refused& refused) {
    throw Refused("its rows, kept as " + std::string(source.cache) +
                  ", are damaged; remove that file: " + refused.what());
  }
}

}  // namespace hexad::table::arrow_files
