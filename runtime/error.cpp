#include "runtime/error.hpp"

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/exception.h>

#include <algorithm>
#include <cctype>

namespace hexad::runtime {
namespace {

thread_local std::string error_text;

bool contains(const std::string& text, const char* part) {
  const std::string pattern = part;
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(text.begin(), text.end(), pattern.begin(), pattern.end(), same) != text.end();
}

// c10d and gloo report timeouts and lost peers by text: their exception types are internal.
hexad_code code_of(const std::string& text, hexad_code otherwise) {
  if (contains(text, "timed out") || contains(text, "timeout")) return HEXAD_DEADLINE_EXCEEDED;
  if (contains(text, "connection closed") || contains(text, "connection reset") || contains(text, "broken pipe") ||
      contains(text, "connection refused") || contains(text, "connect failed"))
    return HEXAD_UNAVAILABLE;
  return otherwise;
}

hexad_code keep(hexad_code code, const std::string& what, const std::string& text) {
  error_text = what + ": " + text;
  return code;
}

}  // namespace

const char* last_error() { return error_text.c_str(); }

hexad_code record_exception(const std::string& what) {
  try {
    throw;
  } catch (const Error& error) {
    return keep(error.code(), what, error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return keep(HEXAD_RESOURCE_EXHAUSTED, what, error.what_without_backtrace());
  } catch (const c10d::TimeoutError& error) {
    return keep(HEXAD_DEADLINE_EXCEEDED, what, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    const std::string text = error.what_without_backtrace();
    return keep(code_of(text, HEXAD_UNAVAILABLE), what, text);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return keep(code_of(text, HEXAD_INTERNAL), what, text);
  } catch (const std::bad_alloc&) {
    return keep(HEXAD_RESOURCE_EXHAUSTED, what, "out of memory");
  } catch (const std::exception& error) {
    return keep(code_of(error.what(), HEXAD_INTERNAL), what, error.what());
  } catch (...) {
    return keep(HEXAD_INTERNAL, what, "unknown exception");
  }
}

}  // namespace hexad::runtime
