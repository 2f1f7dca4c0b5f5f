// The device that a run of the tests is on, and what it leaves out. The environment's HEXAD_TEST_DEVICE says it: cpu,
// as without it, or cuda, which the ctest entries gpu.* set.
#pragma once
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

}  // namespace test_device
