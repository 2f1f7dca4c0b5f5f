// The device that a run of the tests is on, and what it leaves out. The environment's HEXAD_TEST_DEVICE says it: cpu,
// as without it, or cuda, which the ctest entries gpu.* set.
#pragma once
#include <cstdlib>
#include <string>

namespace test_device {

bool is_gpu();
// What the driver shows this process.
int gpus();
// Why the tests cannot run here, in one line; "" if they can.
std::string refusal();

// Has each of `ranks` ranks a device of its own (on the CPU they share it)? If not, `what` is noted as left out.
bool fits(int ranks, const std::string& what);
// Notes what is not run on a GPU for another reason.
void leave_out(const std::string& what, const std::string& reason);
// A line a reason: how much was left out, and what. "" if nothing was.
std::string left_out();

// Whether compute-sanitizer runs this program (tools/sanitize_gpu.sh), under which a kernel takes hundreds of times as
// long. Cases leave out shapes then that differ in nothing but their size.
inline bool under_sanitizer() { return std::getenv("HEXAD_UNDER_SANITIZER") != nullptr; }

}  // namespace test_device
