// Whole runs without LibTorch: three plugins in C from a folder of the test's own, chosen by the configuration alone.
#pragma once
#include <unistd.h>

#include "tests/plugin/plugin_folder.hpp"

namespace toy {

namespace fs = std::filesystem;
using plugin_test::contains;
using plugin_test::read_text;

inline fs::path source_dir() {
  const char* root = std::getenv("HEXAD_SOURCE_DIR");
  return root ? root : ".";
}

// The program of this build.
inline fs::path hexad() {
  const char* build = std::getenv("HEXAD_BUILD_DIR");
  return fs::absolute(build ? build : "build/dev") / "bin/hexad";
}

// toy_backend, toy_generator and the SDK's example loss ppo_clip_c, built once a test program.
inline const fs::path& plugins() {
  static const plugin_test::PluginFolder folder;
  static const bool built = [] {
    const fs::path toys = source_dir() / "tests/support/toy", loss = source_dir() / "sdk/examples/loss_c/ppo_clip_c.c";
    const auto add = [&](const char* kind, const std::string& name, const fs::path& source, const char* version) {
      const fs::path library = folder.compile(name, "-Wl,--no-as-needed -lm -I" + toys.string(), read_text(source));
      folder.write_manifest(library, name, {{"kind", kind}, {"version", version}});
    };
    add("backend", "toy_backend", toys / "toy_backend.c", "1.2.0");
    add("generator", "toy_generator", toys / "toy_generator.c", "1.2.0");
    add("loss", "ppo_clip_c", loss, "1.0.0");
    return true;
  }();
  (void)built;
  return folder.path();
}

class TempDir {
 public:
  TempDir() {
    // In memory where that is possible: checkpoints are synced to disk, which takes seconds on a busy one.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name = ((memory ? fs::path("/dev/shm") : fs::temp_directory_path()) / "hexad-toy-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = fs::canonical(name);
  }
  ~TempDir() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  fs::path operator/(const fs::path& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }
  fs::path write(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  fs::path path_;
};

// The quickstart's puzzle on the toy model; logs and checkpoints go into `dir`.
inline std::string config_text(const fs::path& dir) {
  return fmt::format(R"(grpo:
  num_prompts_per_step: 8
  num_generations_per_prompt: 8
  max_num_epochs: 100
  max_num_steps: 6
  val_period: 0
  val_at_start: false
  max_val_samples: 16
  val_batch_size: 16
  seed: 3
loss_fn:
  plugin: ppo_clip_c
  reference_policy_kl_penalty: 0.0
checkpointing:
  enabled: true
  checkpoint_dir: {0}/checkpoints
  metric_name: null
  save_period: 2
policy:
  model_name: {1}/configs/quickstart_model
  backend: toy_backend
  train_global_batch_size: 64
  train_micro_batch_size: 16
  logprob_batch_size: 32
  max_total_sequence_length: 16
  precision: float32
  optimizer: {{name: torch.optim.SGD, kwargs: {{lr: 40.0}}}}
  scheduler: null
  max_grad_norm: null
  generation: {{backend: toy_generator, max_new_tokens: 2, temperature: 1.0}}
data:
  max_input_seq_length: 14
  train:
    dataset_name: puzzle
    kind: successor
    size: 64
    validation_size: 16
    env_name: exact_answer
    processor: math_hf_data_processor
env: {{exact_answer: {{}}}}
logger: {{log_dir: {0}/logs}}
cluster: {{gpus_per_node: 1, num_nodes: 1, device: cpu}}
plugins: {{paths: [{2}]}}
)",
                     dir.string(), fs::absolute(source_dir()).string(), plugins().string());
}

}  // namespace toy
