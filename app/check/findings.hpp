// What the checks of a start share: the configuration, what was found, and where findings go.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/check/check.hpp"
#include "core/config/typed/run_config.hpp"

namespace hexad::cli {

class StartFindings {
 public:
  // Borrows both. Throws Error(config) as config::run_config does.
  StartFindings(const config::Loaded& loaded, const Start& start)
      : loaded(loaded), start(start), run(config::run_config(loaded)) {}

  const config::Loaded& loaded;
  const Start& start;
  const config::RunConfig run;
  std::shared_ptr<const algorithm::ModelOnDisk> model;  // null: not found, or not read
  plan::Room room;                                      // what a rank has, once memory was looked at

  void error(const std::string& key, const std::string& message) {
    add(config::Problem::Severity::error, key, message);
  }
  // Refused by a run here; one on another machine may have it.
  void not_here(const std::string& key, const std::string& message) {
    add(start.is_here ? config::Problem::Severity::error : config::Problem::Severity::notice, key, message);
    lacks_something_ = true;
  }
  void notice(const std::string& key, const std::string& message) {
    add(config::Problem::Severity::notice, key, message);
  }
  // Of a plugin's file.
  void plugin(const std::string& key, const std::string& message) { error(key, message), ++of_plugins_; }
  void add(std::vector<config::Problem> more);

  bool has_error() const;
  bool lacks_something() const { return lacks_something_; }
  std::vector<config::Problem> take() { return std::move(problems_); }
  // Of all errors so far.
  int exit_code() const;

 private:
  // Nothing is said twice.
  void add(config::Problem::Severity severity, const std::string& key, const std::string& message);

  std::vector<config::Problem> problems_;
  int64_t of_plugins_ = 0;
  bool lacks_something_ = false;
};

void check_plugins(StartFindings& found);  // that are not there, or are refused before their code is opened
void check_model(StartFindings& found);    // policy.model_name, policy.tokenizer; sets `model`
void check_family(StartFindings& found);   // its config.json and weights, as a plugin of the run loads them
void check_machine(StartFindings& found);  // devices, ranks, open files, programs
void check_metrics(StartFindings& found);  // that checkpoints are ranked by, and that end a run
void check_folders(StartFindings& found);  // those that a run makes
void check_data(StartFindings& found);     // rows, and the checkpoint that a run would go on from; wants `model`

}  // namespace hexad::cli
