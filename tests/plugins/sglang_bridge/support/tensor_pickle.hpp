// A rank's side of weights that come by CUDA IPC, in the trainer's process: the handle of fake_cuda.c is an address.
// tests/peers/sglang_ipc_test.cpp has the same pickles read with SGLang's own classes.
#pragma once
#include <sodium.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/sglang_bridge/stand_in/weight_groups.hpp"

namespace sglang_test {

// An opcode of a pickle, and its operand where it has one.
struct Opcode {
  char code;
  std::string text;  // of a text, of bytes, or "module name"
  int64_t number = 0;
};

inline std::vector<Opcode> opcodes_of(const std::string& pickle) {
  std::vector<Opcode> ops;
  size_t at = 2;  // behind the protocol
  const auto operand = [&](size_t size) {
    if (size > pickle.size() - at) throw std::runtime_error("the pickle ends early");
    return pickle.substr(std::exchange(at, at + size), size);
  };
  const auto little_endian = [&](size_t size) {
    const std::string bytes = operand(size);
    int64_t number = 0;
    std::memcpy(&number, bytes.data(), size);
    return number;
  };
  while (at < pickle.size()) {
    Opcode& op = ops.emplace_back(Opcode{pickle[at++], {}});
    if (op.code == 'X') op.text = operand(static_cast<size_t>(little_endian(4)));
    if (op.code == 'C') op.text = operand(static_cast<size_t>(little_endian(1)));
    if (op.code == '\x8a') op.number = little_endian(static_cast<size_t>(little_endian(1)));
    if (op.code != 'c') continue;
    const size_t line = pickle.find('\n', at), end = pickle.find('\n', line + 1);
    op.text = pickle.substr(at, line - at) + " " + pickle.substr(line + 1, end - line - 1);
    at = end + 1;
  }
  return ops;
}

inline std::string unbase64(const std::string& text) {
  std::string bytes(text.size(), '\0');
  size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(), nullptr,
                        &size, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    throw std::runtime_error("not base64");
  bytes.resize(size);
  return bytes;
}

// What a call brings to a server of so many ranks.
inline hexad::sglang::stand_in::WeightGroups::Named read_tensors(const nlohmann::ordered_json& info, int ranks) {
  if (info.at("load_format") != "flattened_bucket") throw std::runtime_error("another load_format");
  const auto payloads = info.at("serialized_named_tensors").get<std::vector<std::string>>();
  if (payloads.size() != static_cast<size_t>(ranks)) throw std::runtime_error("wanted a payload a rank");
  hexad::sglang::stand_in::WeightGroups::Named weights;
  const char* memory = nullptr;
  const std::vector<Opcode> ops = opcodes_of(unbase64(payloads.front()));
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string& text = ops[i].text;
    if (ops[i].code == 'C' && text.size() == 66) std::memcpy(&memory, text.data() + 2, sizeof memory);
    if (ops[i].code != 'X') continue;
    if (text == "name") weights.emplace_back(ops[++i].text, decltype(weights)::value_type::second_type{});
    if (text == "shape")
      for (i += 4; ops[i].code == '\x8a'; ++i) weights.back().second.shape.push_back(ops[i].number);
    if (text == "dtype") weights.back().second.dtype = ops[++i].text.substr(sizeof "torch");
    if (text != "start_idx") continue;
    const int64_t begin = ops[i + 1].number, end = ops[i + 4].number;
    weights.back().second.bytes.assign(memory + begin, memory + end);
  }
  return weights;
}

}  // namespace sglang_test
