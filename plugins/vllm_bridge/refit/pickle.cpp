#include "plugins/vllm_bridge/refit/pickle.hpp"

#include <bit>
#include <cstring>

namespace hexad::vllm {
namespace {

static_assert(std::endian::native == std::endian::little, "pickles are little-endian, and written as they lie");

// Opcodes of pickle protocol 3 that the arguments need. Nothing is memoised: no value occurs twice.
class Pickle {
 public:
  Pickle() { text_ = "\x80\x03"; }

  Pickle& integer(int64_t value) { return op('\x8a').raw(uint8_t{8}).raw(value); }  // LONG1
  Pickle& boolean(bool value) { return op(value ? '\x88' : '\x89'); }
  Pickle& global(const char* module, const char* name) {
    text_ += std::string("c") + module + "\n" + name + "\n";
    return *this;
  }
  Pickle& string(const std::string& value) {
    op('X').raw(static_cast<uint32_t>(value.size()));
    text_ += value;
    return *this;
  }
  Pickle& bytes(const std::string& value) {
    op('C').raw(static_cast<uint8_t>(value.size()));  // SHORT_BINBYTES
    text_ += value;
    return *this;
  }
  Pickle& dict() { return op('}'); }
  Pickle& mark() { return op('('); }
  Pickle& tuple() { return op('t'); }  // of what is above the mark
  Pickle& tuple_of_one() { return op('\x85'); }
  Pickle& set_item() { return op('s'); }
  std::string end() { return op('.').text_; }

 private:
  Pickle& op(char code) {
    text_ += code;
    return *this;
  }
  template <class T>
  Pickle& raw(T value) {
    char copy[sizeof(T)];
    std::memcpy(copy, &value, sizeof(T));
    text_.append(copy, sizeof(T));
    return *this;
  }
  std::string text_;
};

// A pickle of protocol 4: _ctypes._unpickle(ncclUniqueId, ({}, the 128 bytes)).
constexpr unsigned char kBeforeId[] = {
    0x80, 0x04, 0x95, 0xec, 0,   0,   0,   0,   0,   0,    0,    0x8c, 0x07, '_',  'c',  't',  'y',  'p',  'e',
    's',  0x94, 0x8c, 0x09, '_', 'u', 'n', 'p', 'i', 'c',  'k',  'l',  'e',  0x94, 0x93, 0x94, 0x8c, 0x34, 'v',
    'l',  'l',  'm',  '.',  'd', 'i', 's', 't', 'r', 'i',  'b',  'u',  't',  'e',  'd',  '.',  'd',  'e',  'v',
    'i',  'c',  'e',  '_',  'c', 'o', 'm', 'm', 'u', 'n',  'i',  'c',  'a',  't',  'o',  'r',  's',  '.',  'p',
    'y',  'n',  'c',  'c',  'l', '_', 'w', 'r', 'a', 'p',  'p',  'e',  'r',  0x94, 0x8c, 0x0c, 'n',  'c',  'c',
    'l',  'U',  'n',  'i',  'q', 'u', 'e', 'I', 'd', 0x94, 0x93, 0x94, '}',  0x94, 'C',  0x80};
constexpr unsigned char kAfterId[] = {0x94, 0x86, 0x94, 0x86, 0x94, 'R', 0x94, '.'};

}  // namespace

std::string ipc_pickle(const std::string& uuid, std::span<const std::byte, kIpcHandleBytes> handle, int64_t bytes) {
  // Version 1 of c10's form, the oldest, which every receiver takes; 'c': memory of cudaMalloc.
  const std::string form = std::string(
                               "\x01"
                               "c") +
                           std::string(reinterpret_cast<const char*>(handle.data()), handle.size());
  // The counter of references that a sender of torch's keeps does not exist: the receiver's note of it fails, and is
  // ignored. We know that the weights were copied when the server answers.
  const std::string no_counter = "/hexad_no_reference_counter", no_event(64, '\0');
  return Pickle()
      .dict()
      .string(uuid)
      .mark()
      .global("torch", "Tensor")
      .integer(bytes)
      .tuple_of_one()  // shape
      .integer(1)
      .tuple_of_one()  // strides
      .integer(0)      // offset in the storage
      .global("torch.storage", "UntypedStorage")
      .global("torch", "uint8")
      .integer(0)  // device; the receiver puts its own
      .bytes(form)
      .integer(bytes)  // of the storage
      .integer(0)      // the storage's offset in the allocation
      .boolean(false)  // requires_grad
      .bytes(no_counter)
      .integer(0)
      .bytes(no_event)
      .boolean(false)  // no event to wait for: the sender's stream was waited for
      .tuple()
      .set_item()
      .end();
}

std::string uuid_text(std::span<const std::byte, 16> uuid) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto value = std::to_integer<unsigned>(uuid[i]);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

std::string unique_id_pickle(const UniqueId& id) {
  std::string text(reinterpret_cast<const char*>(kBeforeId), sizeof kBeforeId);
  text.append(reinterpret_cast<const char*>(id.data()), id.size());
  return text.append(reinterpret_cast<const char*>(kAfterId), sizeof kAfterId);
}

}  // namespace hexad::vllm
