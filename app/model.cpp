// hexad generate|chat|score|tokenize|convert: a model directory without training.
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "app/commands.hpp"
#include "app/convert/convert.hpp"
#include "app/inference/chat.hpp"
#include "app/inference/inference.hpp"
#include "app/program.hpp"
#include "compat/compat.hpp"
#include "core/rollout/model_text.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/hub/hub.hpp"
#include "lib/text/tokenizer/command.hpp"

namespace hexad::cli {
namespace {

struct Model {
  std::string directory, input;
  std::vector<std::string> overrides;

  inference::InferenceOptions options(cluster::Spawner* spawner) const {
    return {std::filesystem::read_symlink("/proc/self/exe"), spawner, directory, overrides, compat::all()};
  }
};

void add_model_options(CLI::App* command, const std::shared_ptr<Model>& model) {
  command->add_option("MODEL_DIR", model->directory, "Hugging Face model directory, or a name in the Hub's cache")
      ->required();
  command->add_option("OVERRIDES", model->overrides, "key=value of the config, e.g. policy.precision=bfloat16");
}

// A folder or file of this name, else the snapshot in the Hub's cache.
std::string tokenizer_path(const std::string& name) {
  std::error_code unreadable;
  if (std::filesystem::exists(name, unreadable)) return name;
  if (const auto cached = hub::find(hub::Use::tokenizer, "MODEL_DIR", name)) return cached->string();
  const std::string hint = hub::how_to_fetch(hub::Use::tokenizer, name);
  if (!hint.empty()) fail(ErrorKind::data, "{}: no such file or directory{}", name, hint);
  return name;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto model = std::make_shared<Model>();
  auto input = std::make_shared<inference::GenerateInput>();
  auto prompt = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("generate", "Text or token ids in; text, ids and log-probs out");
  add_model_options(command, model);
  CLI::Option* text =
      command->add_option("--prompt", *prompt, "One prompt (a user's message if the model has a chat template)");
  command->add_option("--input", model->input, "JSONL with text, prompt, messages or token_ids")->excludes(text);
  command->add_flag("--raw", input->raw, "Take --prompt as it is, without the chat template");
  command->add_flag("--greedy", input->greedy, "Most likely token at every position");
  command->add_option("--samples", input->samples, "Samples a prompt")->check(CLI::Range(1, 1 << 20));
  command->add_flag("--json", *json, "One JSON object a sample, also for --prompt");
  command->callback([=, &exit_code] {
    if (prompt->empty() && model->input.empty()) throw CLI::ValidationError("generate", "needs --prompt or --input");
    if (!prompt->empty()) input->prompt = *prompt;
    input->file = model->input;
    cluster::Spawner spawner;
    if (::isatty(STDOUT_FILENO) == 0) print_raw();  // what a model says, to the byte
    inference::generate(model->options(&spawner), *input, *json, std::cout);
    exit_code = 0;
  });
}

void add_chat(CLI::App& app, int& exit_code) {
  auto model = std::make_shared<Model>();
  auto input = std::make_shared<inference::ChatInput>();
  CLI::App* command = app.add_subcommand("chat", "Talk to a model: a line in, its answer out");
  add_model_options(command, model);
  command->add_option("--system", input->system, "What the model is told first");
  command->add_flag("--greedy", input->greedy, "Most likely token at every position");
  command->callback([=, &exit_code] {
    cluster::Spawner spawner;
    input->terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
    if (::isatty(STDOUT_FILENO) == 0) print_raw();  // what a model says, to the byte
    inference::chat(model->options(&spawner), *input, std::cin, std::cout, std::cerr);
    exit_code = 0;
  });
}

void add_score(CLI::App& app, int& exit_code) {
  auto model = std::make_shared<Model>();
  CLI::App* command = app.add_subcommand("score", "{\"token_ids\"} a line in, {\"logprobs\"} a line out");
  add_model_options(command, model);
  command->add_option("--input", model->input, "JSONL with token_ids")->required();
  command->callback([=, &exit_code] {
    cluster::Spawner spawner;
    inference::score_file(model->options(&spawner), model->input, std::cout);
    exit_code = 0;
  });
}

void add_tokenize(CLI::App& app, int& exit_code) {
  auto model = std::make_shared<Model>();
  auto decode = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("tokenize", "Text or messages to token ids, or back");
  command->add_option("MODEL_DIR", model->directory, "Directory with tokenizer.json, or a name in the Hub's cache")
      ->required();
  command->add_option("--input", model->input, "JSONL with text, messages or (--decode) token_ids")->required();
  command->add_flag("--decode", *decode, "Token ids to text");
  command->callback([=, &exit_code] {
    model->directory = tokenizer_path(model->directory);
    std::optional<rollout::ModelText> text;  // only messages need the chat template
    const auto render = [&](const nlohmann::ordered_json& line, const std::string& place) {
      if (!text) text = rollout::load_model_text(model->directory, {});
      return inference::render_line(line, place, *text, false);
    };
    text::tokenize_file(model->directory, model->input, std::cout, *decode, render);
    exit_code = 0;
  });
}

void add_convert(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string source, destination, dtype;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("convert", "GGUF, Hugging Face directory or checkpoint to a directory, or to a GGUF file");
  command->add_option("SRC", arguments->source, ".gguf file, model directory, or a name in the Hub's cache")
      ->required();
  command->add_option("DST", arguments->destination, "Directory to make, or a file that ends in .gguf")->required();
  command
      ->add_option("--dtype", arguments->dtype, "float32, bfloat16 or float16; for a DST that ends in .gguf also q8_0")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16", "q8_0"}));
  command->callback([=, &exit_code] {
    convert::ConvertOptions options;
    options.q8_0 = arguments->dtype == "q8_0";
    if (!options.q8_0 && !arguments->dtype.empty()) options.dtype = tensorfile::dtype_from_torch_name(arguments->dtype);
    const convert::ConvertResult result = convert::convert(arguments->source, arguments->destination, options);
    for (const std::string& note : result.notes) std::cerr << "note: " << indented(note) << '\n';
    std::cout << fmt::format("{}: {} tensors, {} parameters, {:.1f} MB from {}\n", arguments->destination,
                             result.tensors, result.parameters, static_cast<double>(result.bytes) / 1e6, result.from);
    exit_code = 0;
  });
}

}  // namespace hexad::cli
