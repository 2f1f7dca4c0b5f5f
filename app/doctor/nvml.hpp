// NVIDIA's driver and cards, asked through its management library, which makes no CUDA context.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::doctor {

struct Card {
  std::string name;
  uint64_t memory = 0, used = 0;  // bytes; 0: the driver does not say
  int major = 0, minor = 0;       // compute capability
  bool mig = false;               // cut into instances
};

struct Driver {
  std::string version;      // "580.65.06"
  int cuda = 0;             // what libcuda serves: 13000
  std::vector<Card> cards;  // of the machine, in the driver's order
  std::string why_not;      // why nothing or not all of this is known; else empty
};

// Asks in a process of its own, ten seconds at most: a driver that is broken may crash or hang. `library` is opened as
// dlopen does; why_not begins with "no library: " where that cannot be. Contract: as of plugin::run_in_child.
Driver ask_driver(const std::string& library = "libnvidia-ml.so.1");

}  // namespace hexad::doctor
