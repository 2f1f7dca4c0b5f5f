#include "app/doctor/nvml.hpp"

#include <dlfcn.h>

#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/verify/child.hpp"
#include "lib/base/json.hpp"

namespace hexad::doctor {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kPatienceS = 10;
constexpr size_t kText = 96;  // what the library wants for the longest of its texts

// Of nvml.h, as it has been since version 2 of these functions.
struct Memory {
  unsigned long long total, free, used;
};
using Device = void*;
using Code = int;  // 0: well

// The library's functions, which report an error of theirs by a code.
class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {}

  // False where the function is not there or refuses; `why` says so.
  template <typename... Parameters, typename... Arguments>
  bool call(Code (*)(Parameters...), const char* name, Arguments... arguments) {
    void* const symbol = ::dlsym(library_, name);
    if (!symbol) return refused(name, "is not in the library");
    Code (*function)(Parameters...) = nullptr;
    static_assert(sizeof function == sizeof symbol);
    std::memcpy(&function, &symbol, sizeof symbol);
    const Code code = function(arguments...);
    return code == 0 || refused(name, words_of(code).c_str());
  }
  std::string why;  // of the first one that was refused

 private:
  std::string words_of(Code code) const {
    const char* (*words)(Code) = nullptr;
    void* const symbol = ::dlsym(library_, "nvmlErrorString");
    if (!symbol) return fmt::format("code {}", code);
    std::memcpy(&words, &symbol, sizeof symbol);
    return words(code);
  }
  bool refused(const char* name, const char* reason) {
    if (why.empty()) why = fmt::format("{}: {}", name, reason);
    return false;
  }

  void* library_;
};

// The types of the functions.
constexpr Code (*kPlain)() = nullptr;
constexpr Code (*kText1)(char*, unsigned) = nullptr;
constexpr Code (*kInt)(int*) = nullptr;
constexpr Code (*kUnsigned)(unsigned*) = nullptr;
constexpr Code (*kDevice)(unsigned, Device*) = nullptr;
constexpr Code (*kText2)(Device, char*, unsigned) = nullptr;
constexpr Code (*kMemory)(Device, Memory*) = nullptr;
constexpr Code (*kInts)(Device, int*, int*) = nullptr;
constexpr Code (*kUnsigneds)(Device, unsigned*, unsigned*) = nullptr;

Json card_of(Nvml& nvml, unsigned index) {
  Device device = nullptr;
  if (!nvml.call(kDevice, "nvmlDeviceGetHandleByIndex_v2", index, &device)) return nullptr;
  char name[kText] = "";
  Memory memory = {};
  int major = 0, minor = 0;
  unsigned mig = 0, mig_later = 0;
  nvml.call(kText2, "nvmlDeviceGetName", device, name, static_cast<unsigned>(kText));
  nvml.call(kMemory, "nvmlDeviceGetMemoryInfo", device, &memory);
  nvml.call(kInts, "nvmlDeviceGetCudaComputeCapability", device, &major, &minor);
  Nvml unasked = nvml;  // cards without instances refuse, and that is no news
  unasked.call(kUnsigneds, "nvmlDeviceGetMigMode", device, &mig, &mig_later);
  return {{"name", name},   {"memory", memory.total}, {"used", memory.used},
          {"major", major}, {"minor", minor},         {"mig", mig == 1}};
}

std::string ask_here(const std::string& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) return json_text(Json{{"why_not", fmt::format("no library: {}", ::dlerror())}});
  Nvml nvml(opened);
  Json answer = {{"version", ""}, {"cuda", 0}, {"cards", Json::array()}};
  if (nvml.call(kPlain, "nvmlInit_v2")) {
    char version[kText] = "";
    int cuda = 0;
    unsigned count = 0;
    nvml.call(kText1, "nvmlSystemGetDriverVersion", version, static_cast<unsigned>(kText));
    nvml.call(kInt, "nvmlSystemGetCudaDriverVersion_v2", &cuda);
    nvml.call(kUnsigned, "nvmlDeviceGetCount_v2", &count);
    answer["version"] = version, answer["cuda"] = cuda;
    for (unsigned i = 0; i < count; ++i)
      if (Json card = card_of(nvml, i); card.is_object()) answer["cards"].push_back(std::move(card));
  }
  answer["why_not"] = nvml.why;
  return json_text(answer);
}

}  // namespace

Driver ask_driver(const std::string& library) {
  const plugin::ChildResult child =
      plugin::run_in_child([&] { return ask_here(library); }, {.timeout_s = kPatienceS, .gpu = true});
  const Json answer = try_parse_json<Json>(child.answer);
  Driver driver;
  if (!answer.is_object()) {
    driver.why_not = fmt::format("asking {} {}", library, child.problem);
    return driver;
  }
  driver.version = answer.value("version", ""), driver.cuda = answer.value("cuda", 0);
  for (const Json& card : answer.value("cards", Json::array()))
    driver.cards.push_back(
        {card.at("name"), card.at("memory"), card.at("used"), card.at("major"), card.at("minor"), card.at("mig")});
  driver.why_not = answer.value("why_not", "");
  return driver;
}

}  // namespace hexad::doctor
