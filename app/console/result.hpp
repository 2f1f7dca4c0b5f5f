// What to do with what a run has made: lines of share/hexad/result.txt, about its newest checkpoint.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hexad::console {

// A line for people, and a command that a shell takes as it stands.
struct NextStep {
  std::string what, command;
};

// Those of `file` for this algorithm ("grpo", "sft" ...): its lines are `ALGORITHMS | WHAT | COMMAND`, in which
// {model} becomes the folder of the weights, {run} the log folder, quoted for a shell. Lines that begin with # say
// nothing. Empty where there is no such file. Throws Error(data) that names the line of another form.
std::vector<NextStep> next_steps(const std::filesystem::path& file, const std::string& algorithm,
                                 const std::filesystem::path& model, const std::filesystem::path& run);

// "  talk to it   hexad chat results/step_80/policy/weights": a command that is wider than so many columns goes on in
// the next line behind a backslash, so that it can be copied whole. 0: as wide as it is.
std::vector<std::string> lines_of(const std::vector<NextStep>& steps, size_t width);

}  // namespace hexad::console
