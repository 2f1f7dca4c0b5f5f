#include "lib/table/arrow/packed.hpp"

#include <cstring>

#include <arrow/buffer.h>
#include <arrow/io/compressed.h>
#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/util/compression.h>

namespace hexad::table::arrow_files {
namespace {

// Owns the codec too.
class Unpacked : public arrow::io::InputStream {
 public:
  Unpacked(std::unique_ptr<arrow::util::Codec> codec, const std::shared_ptr<arrow::io::InputStream>& file)
      : codec_(std::move(codec)),
        stream_(take(arrow::io::CompressedInputStream::Make(codec_.get(), file, arrow::system_memory_pool()))) {}
  arrow::Status Close() override { return stream_->Close(); }
  bool closed() const override { return stream_->closed(); }
  arrow::Result<int64_t> Tell() const override { return stream_->Tell(); }
  arrow::Result<int64_t> Read(int64_t size, void* out) override { return stream_->Read(size, out); }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override { return stream_->Read(size); }

 private:
  std::unique_ptr<arrow::util::Codec> codec_;
  std::shared_ptr<arrow::io::CompressedInputStream> stream_;
};

}  // namespace

std::shared_ptr<arrow::io::InputStream> unpacked(const std::string& file, const std::string& packing) {
  const auto bytes = take(arrow::io::ReadableFile::Open(file, arrow::system_memory_pool()));
  if (packing.empty()) return bytes;
  const auto kind = packing == "gz" ? arrow::Compression::GZIP : arrow::Compression::ZSTD;
  return std::make_shared<Unpacked>(take(arrow::util::Codec::Create(kind)), bytes);
}

void unpack(const std::string& file, const std::string& packing, hexad_arrow_sink out, void* to) {
  constexpr int64_t kPart = 1 << 20;
  const auto stream = unpacked(file, packing);
  while (true) {
    const auto part = take(stream->Read(kPart));
    if (part->size() == 0) return;
    if (const int reason = out(to, part->data_as<char>(), static_cast<size_t>(part->size())); reason != 0)
      throw Refused(std::strerror(reason));
  }
}

}  // namespace hexad::table::arrow_files
