#include "plugins/server_bridge/refit/ipc/pickle.hpp"

#include <bit>
#include <cstring>

namespace hexad::bridge {

static_assert(std::endian::native == std::endian::little, "pickles are little-endian, and written as they lie");

template <class T>
Pickle& Pickle::raw(T value) {
  char copy[sizeof(T)];
  std::memcpy(copy, &value, sizeof(T));
  text_.append(copy, sizeof(T));
  return *this;
}

Pickle& Pickle::integer(int64_t value) { return op('\x8a').raw(uint8_t{8}).raw(value); }  // LONG1

Pickle& Pickle::string(std::string_view value) {
  op('X').raw(static_cast<uint32_t>(value.size()));
  text_ += value;
  return *this;
}

Pickle& Pickle::bytes(std::string_view value) {
  op('C').raw(static_cast<uint8_t>(value.size()));  // SHORT_BINBYTES
  text_ += value;
  return *this;
}

Pickle& Pickle::global(const char* module, const char* name) {
  text_ += std::string("c") + module + "\n" + name + "\n";
  return *this;
}

}  // namespace hexad::bridge
