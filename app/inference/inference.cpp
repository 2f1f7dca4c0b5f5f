#include "app/inference/inference.hpp"

#include <unistd.h>

#include <ostream>

#include "app/inference/libtorch.hpp"
#include "app/inference/open_files.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/policy.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/data/dataset/conversation.hpp"
#include "core/rollout/generation.hpp"
#include "core/rollout/model_text.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/json.hpp"
#include "lib/text/conversation/message.hpp"

namespace hexad::inference {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Rows of one call to the workers: bounds what is in flight, whatever the size of the file.
constexpr int64_t kRowsPerCall = 256;

// Calls take(json, "FILE:LINE") for every line that is not blank.
void for_each_line(const fs::path& input, const std::function<void(const Json& line, const std::string& place)>& take) {
  InputFile in(input);
  skip_mark(in, input);
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("{}:{}", input.string(), number);
    const Json line = parse_data(text, place);
    if (!line.is_object()) fail(ErrorKind::data, "{}: not a JSON object", place);
    take(line, place);
  }
}

std::vector<int64_t> token_ids(const Json& line, const std::string& place) {
  const Json ids = line.value("token_ids", Json());
  if (!ids.is_array() || ids.empty())
    fail(ErrorKind::data, "{}: wanted \"token_ids\": a list of at least one integer", place);
  std::vector<int64_t> result;
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0)
      fail(ErrorKind::data, "{}: token_ids holds {}, wanted integers from 0", place, data_text(id));
    result.push_back(id.get<int64_t>());
  }
  return result;
}

data::Batch batch_of(std::span<const std::vector<int64_t>> rows) {
  std::vector<int64_t> lengths, ids;
  for (const auto& row : rows) {
    lengths.push_back(static_cast<int64_t>(row.size()));
    ids.insert(ids.end(), row.begin(), row.end());
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  return batch;
}

const char* finish_name(int32_t finish) {
  return finish == static_cast<int32_t>(rollout::Finish::stop)     ? "stop"
         : finish == static_cast<int32_t>(rollout::Finish::length) ? "length"
                                                                   : "abort";
}

void check_vocabulary(std::span<const int64_t> ids, int64_t vocabulary, const std::string& place) {
  for (const int64_t id : ids) {
    if (vocabulary > 0 && id >= vocabulary)
      fail(ErrorKind::data, "{}: token id {} is outside the model's vocabulary of {}", place, id, vocabulary);
  }
}

// A prompt as token ids, from any of the forms that a line may have.
std::vector<int32_t> prompt_ids(const Json& line, const std::string& place, const rollout::ModelText& text,
                                int64_t vocabulary) {
  if (line.contains("token_ids")) {
    const auto ids = token_ids(line, place);
    check_vocabulary(ids, vocabulary, place);
    return {ids.begin(), ids.end()};
  }
  const auto encoded = [&](const std::string& prompt, bool add_special_tokens) {
    try {
      std::vector<int32_t> ids = text.tokenizer->encode(prompt, add_special_tokens);
      if (ids.empty()) fail(ErrorKind::data, "the prompt has no tokens");
      return ids;
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", place, error.what());
    }
  };
  if (line.contains("messages")) return encoded(render_line(line, place, text, true), false);
  for (const char* key : {"text", "prompt"})
    if (line.contains(key) && line.at(key).is_string()) return encoded(line.at(key).get<std::string>(), true);
  fail(ErrorKind::data, "{}: wanted one of \"text\", \"prompt\", \"messages\", \"token_ids\"", place);
}

}  // namespace

std::unique_ptr<cluster::WorkerGroup> start_group(const std::string& program, cluster::Spawner* spawner,
                                                  const config::RunConfig& run) {
  checkpoint::require_intact_model(run.policy.model_name);
  cluster::WorkerGroupOptions worker_options;
  worker_options.world_size = spawner ? static_cast<int>(run.cluster.gpus_per_node * run.cluster.num_nodes) : 1;
  require_open_files(worker_options.world_size);
  require_libtorch();
  worker_options.program = program;
  worker_options.call_timeout_s = run.cluster.worker_timeout_s;
  return std::make_unique<cluster::WorkerGroup>(spawner, worker_options);
}

std::string render_line(const Json& line, const std::string& place, const rollout::ModelText& text, bool prompt) {
  const data::Row row{line, place};
  const Json& messages = table::field(row, "messages");
  text::check_messages(messages, place, "messages");
  const Json flag = line.value("add_generation_prompt", Json());
  if (!flag.is_boolean() && !flag.is_null())
    fail(ErrorKind::data, "{}: field 'add_generation_prompt' is {}, want true or false", place, flag.type_name());
  const data::RenderOptions options{flag.is_null() ? prompt : flag.get<bool>(), data::tools_of(row)};
  try {
    return text.tools().render(messages, options);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", place, error.what());
  }
}

config::Resolved inference_config(const InferenceOptions& options) {
  std::string path = (fs::temp_directory_path() / "hexad-XXXXXX.yaml").string();
  const int fd = ::mkstemps(path.data(), 5);
  if (fd < 0) fail(ErrorKind::data, "cannot make a file in {}", fs::temp_directory_path().string());
  ::close(fd);
  try {
    write_file(path, "policy:\n  model_name: " + json_text(Json(options.model_dir)) + "\n  precision: float32\n");
    config::Resolved resolved = config::resolve(path, options.overrides, options.compat);
    fs::remove(path);
    return resolved;
  } catch (...) {
    fs::remove(path);
    throw;
  }
}

int64_t score_file(const InferenceOptions& options, const fs::path& input, std::ostream& out) {
  const config::Resolved resolved = inference_config(options);
  const config::RunConfig run = config::run_config(resolved);
  const std::string model_dir = algorithm::find_model(options.model_dir, !run.policy.random_init_seed);
  const int64_t vocab = rollout::vocabulary_size(model_dir);
  std::vector<std::vector<int64_t>> rows;
  for_each_line(input, [&](const Json& line, const std::string& place) {
    rows.push_back(token_ids(line, place));
    check_vocabulary(rows.back(), vocab, place);
  });
  if (rows.empty()) return 0;
  const auto workers = start_group(options.program, options.spawner, run);
  cluster::Policy policy(
      *workers, run.policy,
      cluster::start_workers(*workers, resolved.root, run, {run.policy.backend, "", ""}, model_dir, ""));
  for (size_t begin = 0; begin < rows.size(); begin += kRowsPerCall) {
    const size_t count = std::min<size_t>(kRowsPerCall, rows.size() - begin);
    data::Batch batch = batch_of(std::span(rows).subspan(begin, count));
    batch.set("logprobs", policy.logprobs(batch, cluster::Weights::current), data::Axis::token);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto values = batch.row<float>("logprobs", i);
      const Json line = {{"logprobs", std::vector<float>(values.begin(), values.end())}};
      out << json_text(with_named_infinities(line)) << '\n';
    }
  }
  return static_cast<int64_t>(rows.size());
}

int64_t generate(const InferenceOptions& options, const GenerateInput& input, bool json, std::ostream& out) {
  const config::Resolved resolved = inference_config(options);
  const config::RunConfig run = config::run_config(resolved);
  const std::string model_dir = algorithm::find_model(options.model_dir, !run.policy.random_init_seed);
  const rollout::ModelText text = rollout::load_model_text(model_dir, run.policy.tokenizer);

  const int64_t vocab = rollout::vocabulary_size(model_dir);
  std::vector<std::vector<int32_t>> prompts;
  if (input.prompt) {
    Json line = {{"text", *input.prompt}};
    if (text.chat_template && !input.raw) line = {{"messages", {{{"role", "user"}, {"content", *input.prompt}}}}};
    prompts.push_back(prompt_ids(line, "--prompt", text, vocab));
  } else {
    const int64_t most = run.policy.max_total_sequence_length;
    for_each_line(input.file, [&](const Json& line, const std::string& place) {
      prompts.push_back(prompt_ids(line, place, text, vocab));
      if (static_cast<int64_t>(prompts.back().size()) >= most)
        fail(ErrorKind::data,
             "{}: the prompt has {} tokens, of at most {} with its response "
             "(policy.max_total_sequence_length)",
             place, prompts.back().size(), most);
    });
  }
  std::vector<rollout::Request> requests;
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (int64_t k = 0; k < input.samples; ++k) {
      const uint64_t row = p * input.samples + k;
      requests.push_back(
          {prompts[p], static_cast<int64_t>(p), static_cast<uint64_t>(run.grpo.seed) * 0x9E3779B97F4A7C15ull + row});
    }
  }
  if (requests.empty()) return 0;
  rollout::Sampling sampling = rollout::sampling_from(run.policy, text.eos_ids);
  sampling.greedy = input.greedy;

  const auto workers = start_group(options.program, options.spawner, run);
  cluster::start_workers(*workers, resolved.root, run, {"", "", run.policy.generation.plugin}, model_dir,
                         text.tokenizer_dir);
  rollout::Generation generation(*workers, run.policy.generation.replica_size);
  const data::Batch completions = generation.generate(requests, sampling);
  for (int64_t i = 0; i < completions.size(); ++i) {
    const auto tokens = completions.row<int32_t>("tokens", i);
    const auto logprobs = completions.row<float>("logprobs", i);
    const std::string response = text.tokenizer->decode(tokens, /*skip_special_tokens=*/true);
    if (input.prompt && !json) {
      out << response << '\n';
      continue;
    }
    out << json_text(Json{{"text", response},
                          {"token_ids", std::vector<int32_t>(tokens.begin(), tokens.end())},
                          {"logprobs", std::vector<float>(logprobs.begin(), logprobs.end())},
                          {"finish_reason", finish_name(completions.row<int32_t>("finish", i)[0])}})
        << '\n';
  }
  return completions.size();
}

}  // namespace hexad::inference
