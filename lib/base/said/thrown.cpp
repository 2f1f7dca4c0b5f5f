#include "lib/base/said/thrown.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

#include "lib/base/utf8.hpp"

namespace hexad {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr int kMostNested = 16;

std::string type_text() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (!type) return "an exception of another C++ library";
  char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);
  const std::string text = "an exception of type " + shortened(name ? name : type->name(), kMostBytes);
  std::free(name);
  return text;
}

std::string text_of(const char* text) { return text && *text ? shortened(text, kMostBytes) : type_text(); }

std::string thrown_text(int left) {
  try {
    throw;
  } catch (const std::exception& error) {
    std::string text = text_of(error.what());
    try {
      std::rethrow_if_nested(error);
    } catch (...) {
      text += ": " + (left > 0 ? thrown_text(left - 1) : "...");
    }
    return text;
  } catch (const std::string& text) {
    return text_of(text.c_str());
  } catch (const char* text) {
    return text_of(text);
  } catch (...) {
    return type_text();
  }
}

}  // namespace

std::string thrown_text() { return thrown_text(kMostNested); }

}  // namespace hexad
