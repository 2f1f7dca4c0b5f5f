// Supervised runs on the toy backend, with the first-party losses.
#pragma once
#include "tests/support/toy/toy.hpp"

namespace toy {

// The quickstart's puzzle as conversations, or with one wrong answer each as pairs.
inline std::string supervised_config_text(const std::string& algorithm, const TempDir& dir) {
  const bool pairs = algorithm != "sft";
  std::string lines;
  for (int i = 0; i < 48; ++i) {
    const std::string letters = {static_cast<char>('a' + i / 8), static_cast<char>('a' + i % 8)};
    const auto answer = [&](int step) { return std::string(1, static_cast<char>('a' + (i + step) % 8)); };
    lines += pairs
                 ? plugin_test::Json{{"prompt", letters}, {"chosen", answer(1)}, {"rejected", answer(3)}}.dump() + "\n"
                 : plugin_test::Json{{"input", letters}, {"output", answer(1)}}.dump() + "\n";
  }
  const std::string file = dir.write("data.jsonl", lines).string();
  return fmt::format(R"({1}:
  max_num_epochs: 100
  max_num_steps: 6
  val_period: 0
  val_batches: -1
  val_global_batch_size: 4
  val_micro_batch_size: 2
  val_at_start: false
  seed: 3
checkpointing: {{enabled: true, checkpoint_dir: {0}/checkpoints, metric_name: null, save_period: 2}}
policy:
  model_name: {2}/configs/quickstart_model
  tokenizer:
    chat_template: "{{% for m in messages %}}{{% if m.role == 'user' %}}<question>{{{{ m.content
        }}}}<answer>{{% else %}}{{{{ m.content }}}}{{% endif %}}{{% endfor %}}"
  backend: toy_backend
  train_global_batch_size: 8
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  precision: float32
  optimizer: {{name: torch.optim.SGD, kwargs: {{lr: 1.0}}}}
  scheduler: null
  max_grad_norm: null
data:
  max_input_seq_length: 16
  train: {{dataset_name: {3}, data_path: {4}}}
  validation: {{dataset_name: {3}, data_path: {4}}}
logger: {{log_dir: {0}/logs}}
cluster: {{gpus_per_node: 1, num_nodes: 1, device: cpu}}
plugins: {{paths: [{5}]}}
)",
                     dir.path().string(), algorithm, fs::absolute(source_dir()).string(),
                     pairs ? "BinaryPreferenceDataset" : "ResponseDataset", file, plugins().string());
}

}  // namespace toy
