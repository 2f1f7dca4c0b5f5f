// One function a command: adds it to the program and, when it was chosen, runs it and sets the exit code.
#pragma once
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace hexad::cli {

void add_train(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_config(CLI::App& app, int& exit_code);
void add_data(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_checkpoint(CLI::App& app, int& exit_code);
// `commit`: of the checkout that this program was built from; "" where there was none.
void add_doctor(CLI::App& app, const char* commit, int& exit_code);
void add_setup(CLI::App& app);
void add_plugin(CLI::App& app, int& exit_code);
// As the subcommand `name`, or with an empty name as all that the program does.
void add_plugin_verify(CLI::App& app, const char* name, int& exit_code);
void add_plugin_replay(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_score(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_report(CLI::App& app, int& exit_code);
void add_help(CLI::App& app, int& exit_code);
// What a shell is told that asks `hexad __complete WORDS`: what may stand in the place of the last word.
std::string completions(const CLI::App& app, const std::vector<std::string>& words);
void add_worker(CLI::App& app, int& exit_code);          // hidden: what `hexad train` starts
void add_plugin_process(CLI::App& app, int& exit_code);  // hidden: what plugins.own_process starts

// KEY=VALUE on the command line of `plugin verify` and `plugin replay`. Sets a dotted key of a plugin_config; a value
// that is no JSON is a text. Throws CLI::ValidationError for no assignment.
void set_plugin_key(nlohmann::ordered_json& config, const std::string& assignment);

}  // namespace hexad::cli
