// What `hexad score` and `hexad generate` do: a model directory through any backend or generator, without training.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster/process/worker_group.hpp"
#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::inference {

struct InferenceOptions {
  std::string program;
  cluster::Spawner* spawner = nullptr;
  std::string model_dir;
  std::vector<std::string> overrides;  // of the configuration: policy.precision=float32 ...
  config::Compat compat = {};          // names of other systems that an override may have
};

// One worker for each rank of the configuration, without a log; on a thread of this process where there is no spawner.
std::unique_ptr<cluster::WorkerGroup> start_group(const std::string& program, cluster::Spawner* spawner,
                                                  const config::RunConfig& run);

// The text of {"messages": [...], "tools": [...], "add_generation_prompt": true}. `prompt`: the latter where the line
// does not say it. Throws Error that begins with `place`.
std::string render_line(const nlohmann::ordered_json& line, const std::string& place, const rollout::ModelText& text,
                        bool prompt);

// The configuration that a model directory and overrides mean: the schema's defaults around policy.model_name.
config::Resolved inference_config(const InferenceOptions& options);

// {"token_ids": [...]} a line in, {"logprobs": [...]} a line out, position 0 holding 0. Returns the number of lines.
// Throws Error(data) naming FILE:LINE for a malformed line, before anything is computed.
int64_t score_file(const InferenceOptions& options, const std::filesystem::path& input, std::ostream& out);

// Where the prompts come from: one text, or lines {"text"|"prompt"|"messages"|"token_ids": ...}.
struct GenerateInput {
  std::optional<std::string> prompt;  // put as a user's message if the model has a chat template and `raw` is not set
  std::filesystem::path file;
  bool raw = false;
  bool greedy = false;
  int64_t samples = 1;
};

// One {"text", "token_ids", "logprobs", "finish_reason"} a sample out; for one prompt without `json` the bare text.
int64_t generate(const InferenceOptions& options, const GenerateInput& input, bool json, std::ostream& out);

}  // namespace hexad::inference
