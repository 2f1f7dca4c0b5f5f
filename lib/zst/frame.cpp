#include "lib/zst/frame.hpp"

#include <zstd.h>

#include <new>

#include "lib/base/file/input_file.hpp"

namespace hexad::zst {

Frame::Frame(std::function<void(std::string_view)> take) : take_(std::move(take)), context_(ZSTD_createCCtx()) {
  if (!context_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  out_.resize(ZSTD_CStreamOutSize());
}

Frame::~Frame() { ZSTD_freeCCtx(context_); }

void Frame::add(std::string_view text) { pass(text, false); }

void Frame::end() { pass({}, true); }

void Frame::pass(std::string_view text, bool is_last) {
  ZSTD_inBuffer in = {text.data(), text.size(), 0};
  for (;;) {
    ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
    const size_t left = ZSTD_compressStream2(context_, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left)) throw std::bad_alloc();  // with these parameters there is no other
    if (out.pos > 0) take_({out_.data(), out.pos});
    if (is_last ? left == 0 : in.pos == in.size) return;
  }
}

void each_part(const std::filesystem::path& file, const std::function<bool(std::string_view)>& take) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (!context) throw std::bad_alloc();
  InputFile stream(file);
  std::string bytes(ZSTD_DStreamInSize(), 0), part(ZSTD_DStreamOutSize(), 0);
  for (;;) {
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ZSTD_inBuffer in = {bytes.data(), static_cast<size_t>(stream.gcount()), 0};
    if (in.size == 0) return;
    // A part that is full may not be all that is known.
    for (bool more = true; more;) {
      ZSTD_outBuffer out = {part.data(), part.size(), 0};
      if (ZSTD_isError(ZSTD_decompressStream(context.get(), &out, &in))) return;
      if (out.pos > 0 && !take({part.data(), out.pos})) return;
      more = in.pos < in.size || out.pos == out.size;
    }
  }
}

}  // namespace hexad::zst
