#include "app/inference/chat.hpp"

#include <algorithm>
#include <istream>
#include <ostream>

#include "core/algorithm/run/model_directory.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/rollout/generation.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::inference {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kCommands =
    "/reset forgets the conversation, /system TEXT sets what the model is told first, "
    "/quit or Ctrl-D ends";

Json message(const char* role, const std::string& content) { return {{"role", role}, {"content", content}}; }

// The conversation before its first line.
Json begun(const std::string& system) {
  Json messages = Json::array();
  if (!system.empty()) messages.push_back(message("system", system));
  return messages;
}

std::string without_blanks(const std::string& text) {
  constexpr const char* blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// The model's limit, as far as config.json says one; the overrides that come behind it win.
std::vector<std::string> with_room(const std::string& model_dir, const std::vector<std::string>& overrides) {
  constexpr const char* key = "policy.max_total_sequence_length";
  const auto is_given = [&](const std::string& each) {
    return std::string_view(each).substr(std::min(each.find_first_not_of('+'), each.size())).starts_with(key);
  };
  std::vector<std::string> result = overrides;
  if (std::ranges::any_of(overrides, is_given)) return result;
  const Json positions =
      read_json<Json>(fs::path(model_dir) / "config.json").value("max_position_embeddings", Json(kChatTokens));
  const int64_t most = positions.is_number_integer() && positions > 0 ? positions.get<int64_t>() : kChatTokens;
  result.push_back(fmt::format("{}={}", key, std::min(most, kChatTokens)));
  return result;
}

// A model that is ready to answer.
class Model {
 public:
  Model(const InferenceOptions& options, bool greedy)
      : resolved_(inference_config(options)),
        run_(config::run_config(resolved_)),
        directory_(algorithm::find_model(options.model_dir, !run_.policy.random_init_seed)),
        text_(rollout::load_model_text(directory_, run_.policy.tokenizer)),
        sampling_(rollout::sampling_from(run_.policy, text_.eos_ids)) {
    if (!text_.chat_template) {
      fail(ErrorKind::config,
           "{}: has no chat template, so that nothing says how a conversation is put: set "
           "policy.tokenizer.chat_template, or use `hexad generate --raw`",
           directory_);
    }
    sampling_.greedy = greedy;
    workers_ = start_group(options.program, options.spawner, run_);
    cluster::start_workers(*workers_, resolved_.root, run_, {"", "", run_.policy.generation.plugin}, directory_,
                           text_.tokenizer_dir);
    generation_.emplace(*workers_, run_.policy.generation.replica_size);
  }

  std::string answer(const Json& messages) {
    const std::string prompt = text_.tools().render(messages, {.add_generation_prompt = true, .tools = {}});
    const std::vector<int32_t> ids = text_.tokenizer->encode(prompt, /*add_special_tokens=*/false);
    const auto size = static_cast<int64_t>(ids.size()), most = run_.policy.max_total_sequence_length;
    if (size == 0 || size >= most) {
      fail(ErrorKind::data,
           "the conversation has {} tokens, of at most {} with its answer (policy.max_total_sequence_length): /reset "
           "begins another one",
           size, most);
    }
    const uint64_t seed = static_cast<uint64_t>(run_.grpo.seed) * 0x9E3779B97F4A7C15ull + turn_;
    const rollout::Request request = {ids, static_cast<int64_t>(turn_++), seed};
    const data::Batch completions = generation_->generate({&request, 1}, sampling_);
    return text_.tokenizer->decode(completions.row<int32_t>("tokens", 0), /*skip_special_tokens=*/true);
  }

 private:
  config::Resolved resolved_;
  config::RunConfig run_;
  std::string directory_;
  rollout::ModelText text_;
  rollout::Sampling sampling_;
  std::unique_ptr<cluster::WorkerGroup> workers_;
  std::optional<rollout::Generation> generation_;
  uint64_t turn_ = 0;
};

}  // namespace

int64_t converse(std::istream& in, std::ostream& out, std::ostream& said, const ChatInput& input,
                 const Answer& answer) {
  std::string system = input.system;
  Json messages = begun(system);
  int64_t answers = 0, number = 0;
  if (input.terminal) said << kCommands << std::endl;
  while (true) {
    if (input.terminal) said << "> " << std::flush;
    std::string line;
    if (!std::getline(in, line)) break;
    ++number;
    line = without_blanks(line);
    const std::string word = line.substr(0, line.find_first_of(" \t"));
    if (line.empty()) continue;
    if (word == "/quit") return answers;
    if (word == "/reset" || word == "/system") {
      if (word == "/system") system = without_blanks(line.substr(word.size()));
      messages = begun(system);
      continue;
    }
    if (line.starts_with("//")) {
      line.erase(0, 1);
    } else if (line.starts_with('/')) {
      said << one_line(word) << " is no command: " << kCommands << "; a line that begins with // is a text"
           << std::endl;
      continue;
    }
    messages.push_back(message("user", line));
    try {
      messages.push_back(message("assistant", answer(messages)));
    } catch (const Error& error) {
      messages.erase(messages.size() - 1);
      if (error.kind() != ErrorKind::data) throw;
      if (!input.terminal) fail(error.kind(), "line {}: {}", number, error.what());
      said << indented(error.what()) << std::endl;
      continue;
    }
    out << messages.back().at("content").get_ref<const std::string&>() << std::endl;
    ++answers;
  }
  if (input.terminal) said << std::endl;
  return answers;
}

int64_t chat(const InferenceOptions& options, const ChatInput& input, std::istream& in, std::ostream& out,
             std::ostream& said) {
  InferenceOptions with = options;
  with.overrides = with_room(algorithm::find_model(options.model_dir), options.overrides);
  Model model(with, input.greedy);
  return converse(in, out, said, input, [&](const Json& messages) { return model.answer(messages); });
}

}  // namespace hexad::inference
