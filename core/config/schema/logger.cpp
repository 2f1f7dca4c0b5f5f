#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_logger(Schema& s) {
  s.section("logger", "what is written about a run");
  s.add("logger.log_dir", kText, "logs", "folder of metrics.jsonl, config.yaml, report.html");
  s.add("logger.num_val_samples_to_print", kInt, "0", "validation samples printed").at_least(0);
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
  for (const char* service : {"wandb", "mlflow", "swanlab"}) {
    s.add(fmt::format("logger.{}_enabled", service), kBool, "false", fmt::format("log to {}", service))
        .accepted(fmt::format("{} is a Python client; metrics.jsonl holds the same metrics", service));
    s.add(fmt::format("logger.{}", service), kMap | kNull, "{}", fmt::format("settings of {}", service))
        .open()
        .dormant();
  }
}

}  // namespace hexad::config
