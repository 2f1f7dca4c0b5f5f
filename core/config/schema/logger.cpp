#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_logger(Schema& s) {
  s.section("logger", "what is written about a run");
  s.add("logger.log_dir", kText, "logs", "folder of metrics.jsonl, config.yaml, report.html");
  s.add("logger.num_val_samples_to_print", kInt, "0", "validation samples printed").at_least(0);
  s.add("logger.samples_per_step", kInt | kNull, "",
        "samples of a step and of a validation that are written, and shown to trackers; null: all, 0: none")
      .at_least(0);
  s.add("logger.profile_steps", kList, "[]",
        "steps whose operators and GPU kernels are written as Chrome traces, profile-step<step>-rank<rank>.json in "
        "log_dir")
      .elements(kInt);
  s.add("logger.tensorboard_enabled", kBool, "false", "write TensorBoard event files");
  s.add("logger.tensorboard", kMap | kNull, "{}", "arguments of TensorBoard's Python writer")
      .open()
      .accepted("event files are written into logger.log_dir");
  s.add("logger.monitor_gpus", kBool, "true", "record memory and use of devices")
      .accepted("devices are not watched; time and tokens per second are in metrics.jsonl");
  s.section("logger.gpu_monitoring", "how often").accepted("devices are not watched");
  s.add("logger.gpu_monitoring.collection_interval", kFloat, "10", "seconds between measurements").above(0);
  s.add("logger.gpu_monitoring.flush_interval", kFloat, "10", "seconds between writes").above(0);
  const auto service = [&](const std::string& name, const char* settings) {
    s.add("logger." + name + "_enabled", kBool, "false", "send the run to " + name + ": docs/trackers.md");
    s.add("logger." + name, kMap | kNull, "", settings).open();
  };
  service("wandb", "arguments of wandb.init: project, name, entity ...");
  service("mlflow", "experiment_name, run_name, tracking_uri; artifact_location of a new experiment");
  service("swanlab", "arguments of swanlab.init: project, name, workspace ...");
  service("trackio", "arguments of trackio.init: project, name, space_id ...");
  s.add("logger.tracker_python", kText, "python3", "the Python that has wandb, mlflow, swanlab or trackio");
  s.add("logger.tracker_pass_env", kList, "[]",
        "variables that trackers are given though they look like secrets; each has its own service's key anyway")
      .elements(kText);
  s.section("logger.trackers", "a program of your own that is told of the run, or a list of several: docs/trackers.md",
            kMap | kList | kNull)
      .elements(kMap);
  s.add("logger.trackers.name", kText, "", "what messages and the log call it");
  s.add("logger.trackers.command", kList | kText, "", "the program and its arguments, or one text for /bin/sh")
      .elements(kText);
  s.add("logger.trackers.settings", kMap | kNull, "",
        "handed to it with the first line: project, name, whatever it reads")
      .open();
}

}  // namespace hexad::config
