#include "plugins/vllm_bridge/refit/pickle.hpp"

#include "plugins/server_bridge/refit/ipc/pickle.hpp"

namespace hexad::vllm {
namespace {

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

std::string ipc_pickle(const bridge::SharedMemory& memory) {
  bridge::Pickle pickle;
  pickle.dict().string(memory.uuid);
  bridge::add_tensor_arguments(pickle, memory, [](bridge::Pickle& p) { p.integer(0); });  // the receiver puts its own
  return pickle.set_item().end();
}

std::string unique_id_pickle(const UniqueId& id) {
  std::string text(reinterpret_cast<const char*>(kBeforeId), sizeof kBeforeId);
  text.append(reinterpret_cast<const char*>(id.data()), id.size());
  return text.append(reinterpret_cast<const char*>(kAfterId), sizeof kAfterId);
}

}  // namespace hexad::vllm
