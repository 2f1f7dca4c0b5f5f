#include "tests/support/test_device.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <utility>

namespace test_device {
namespace {

std::string wanted() {
  const char* value = std::getenv("HEXAD_TEST_DEVICE");
  return value ? value : "cpu";
}

// Number of GPUs, and why there is none. Asked of the driver, as LibTorch is not in every test.
std::pair<int, std::string> find_gpus() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return {0, "no driver (libcuda.so.1)"};
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  const auto init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"));
  if (!init || !count) return {0, "libcuda.so.1 is no driver"};
  int found = 0, code = init(0);
  if (code == 0) code = count(&found);
  if (code != 0) return {0, "the driver answers with error " + std::to_string(code)};
  return {found, found ? "" : "the driver shows none"};
}

const std::pair<int, std::string>& found() {
  static const auto result = find_gpus();
  return result;
}

// By reason: what was left out, and how often.
std::map<std::string, std::map<std::string, int>>& notes() {
  static std::map<std::string, std::map<std::string, int>> all;
  return all;
}

}  // namespace

bool is_gpu() {
  static const bool result = wanted() == "cuda";
  return result;
}

int gpus() { return found().first; }

std::string refusal() {
  if (wanted() != "cpu" && !is_gpu()) return "HEXAD_TEST_DEVICE is '" + wanted() + "', wanted cpu or cuda";
  if (!is_gpu() || gpus() > 0) return "";
  return "HEXAD_TEST_DEVICE=cuda, but this machine has no GPU: " + found().second;
}

bool fits(int ranks, const std::string& what) {
  if (!is_gpu() || ranks <= gpus()) return true;
  leave_out(what, "for lack of GPUs (" + std::to_string(gpus()) + " here)");
  return false;
}

void leave_out(const std::string& what, const std::string& reason) { ++notes()[reason][what]; }

std::string left_out() {
  std::string text;
  for (const auto& [reason, names] : notes()) {
    int total = 0;
    std::string list;
    for (const auto& [name, times] : names) {
      total += times;
      list += (list.empty() ? "" : "; ") + name + (times > 1 ? " (" + std::to_string(times) + " times)" : "");
    }
    text += "left out " + reason + ": " + std::to_string(total) + ": " + list + "\n";
  }
  return text;
}

}  // namespace test_device
