#include "lib/text/tokenizer/step/unicode_normalizer.hpp"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uniset.h>

#include "lib/base/error.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

const icu::UnicodeSet& characters_of_unicode_11() {
  static const icu::UnicodeSet* set = [] {
    UErrorCode status = U_ZERO_ERROR;
    auto* built = new icu::UnicodeSet(icu::UnicodeString("[:Age=11.0:]"), status);
    if (U_FAILURE(status)) fail(ErrorKind::internal, "ICU has no character ages: {}", u_errorName(status));
    built->freeze();
    return built;
  }();
  return *set;
}

const icu::Normalizer2* icu_form(UnicodeNormalizer::Form form, UErrorCode& status) {
  switch (form) {
    case UnicodeNormalizer::Form::nfc: return icu::Normalizer2::getNFCInstance(status);
    case UnicodeNormalizer::Form::nfd: return icu::Normalizer2::getNFDInstance(status);
    case UnicodeNormalizer::Form::nfkc: return icu::Normalizer2::getNFKCInstance(status);
    case UnicodeNormalizer::Form::nfkd: return icu::Normalizer2::getNFKDInstance(status);
  }
  return nullptr;
}

icu::StringPiece piece(std::string_view text) { return {text.data(), static_cast<int32_t>(text.size())}; }

// No character below U+0300 changes in NFC, nor combines with another one below it.
bool below_combining_marks(std::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0xCC) return false;
  }
  return true;
}

}  // namespace

struct UnicodeNormalizer::Icu {
  Form form;
  const icu::Normalizer2* newest;
  icu::FilteredNormalizer2 filtered;
};

UnicodeNormalizer::UnicodeNormalizer(Form form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* newest = icu_form(form, status);
  if (U_FAILURE(status) || newest == nullptr) {
    fail(ErrorKind::internal, "ICU cannot load its normalization data: {}", u_errorName(status));
  }
  icu_.reset(new Icu{form, newest, icu::FilteredNormalizer2(*newest, characters_of_unicode_11())});
}

const UnicodeNormalizer& UnicodeNormalizer::get(Form form) {
  static const UnicodeNormalizer forms[] = {UnicodeNormalizer(Form::nfc), UnicodeNormalizer(Form::nfd),
                                            UnicodeNormalizer(Form::nfkc), UnicodeNormalizer(Form::nfkd)};
  return forms[static_cast<int>(form)];
}

bool UnicodeNormalizer::leaves_alone(std::string_view text) const {
  if (icu_->form == Form::nfc ? below_combining_marks(text) : is_ascii(text)) return true;
  UErrorCode status = U_ZERO_ERROR;
  return icu_->newest->isNormalizedUTF8(piece(text), status) && U_SUCCESS(status);
}

void UnicodeNormalizer::append(std::string_view text, std::string& out) const {
  if (text.size() > INT32_MAX / 4) fail(ErrorKind::data, "a text of {} bytes is too long to normalize", text.size());
  UErrorCode status = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&out);
  icu_->filtered.normalizeUTF8(0, piece(text), sink, nullptr, status);
  if (U_FAILURE(status)) fail(ErrorKind::internal, "ICU cannot normalize a text: {}", u_errorName(status));
}

}  // namespace hexad::text
