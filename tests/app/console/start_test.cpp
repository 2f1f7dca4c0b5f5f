// The first lines of a run.
#include <doctest/doctest.h>

#include "app/console/lines.hpp"
#include "lib/yaml/file.hpp"

using namespace hexad;
using console::start_lines;
using Reply = cluster::protocol::Start::Reply;
using Lines = std::vector<std::string>;

namespace {

struct Run {
  config::RunConfig config;
  yaml::Node resolved = yaml::read_text("policy: {}", "run.yaml");
  cluster::Placement placement = cluster::colocated(1);
  std::vector<Reply> ranks;
  int64_t rows = 7473, validation_rows = 0;

  explicit Run(int count = 1) : placement(cluster::colocated(count)) {
    config.cluster.num_nodes = 1;
    config.cluster.device = "cuda";
    config.policy.model_name = "Qwen/Qwen2.5-1.5B";
    config.policy.precision = "bfloat16";
    add("openai_format", "train.jsonl", {{"output_key", "solution"}});
    for (int rank = 0; rank < count; ++rank) {
      Reply reply;
      reply.device = fmt::format("cuda:{}", rank);
      reply.card = "NVIDIA H100 80GB HBM3";
      if (rank == 0) {
        reply.backend.emplace();
        reply.loss.emplace();
        reply.generator.emplace();
        static_cast<cluster::protocol::PluginLine&>(*reply.backend) = {"trainer", "1.2.0", "/own/libtrainer.so", "ab"};
        static_cast<cluster::protocol::PluginLine&>(*reply.loss) = {"mine", "0.1.0", "/home/me/libmine.so", "cd"};
        static_cast<cluster::protocol::PluginLine&>(*reply.generator) = {"drawer", "1.0.0", "/own/libdrawer.so", "ef"};
        reply.backend->num_parameters = 1'543'714'304;
      }
      ranks.push_back(reply);
    }
  }
  void add(const std::string& name, const std::optional<std::string>& path, const nlohmann::ordered_json& spec) {
    config::DatasetConfig& data = config.data.train.emplace_back();
    data.dataset_name = name;
    data.data_path = path;
    data.spec = spec;
  }
  Lines lines() const {
    return start_lines({config, resolved, placement, ranks, "logs/exp_001", rows, validation_rows}, "/own");
  }
  std::string line(const std::string& label) const {
    std::string found;
    for (const std::string& each : lines())
      if (each.starts_with(label)) found += (found.empty() ? "" : "\n") + each.substr(console::kLabelWidth);
    return found;
  }
};

}  // namespace

TEST_CASE("one GPU: device and card, model and size, rows, plugins with the files of foreign ones, log folder") {
  CHECK(Run().lines() == Lines{"device    cuda (1 rank: NVIDIA H100 80GB HBM3)",
                               "model     Qwen/Qwen2.5-1.5B (1.54 B parameters, bfloat16)",
                               "data      train.jsonl (openai_format, output_key: solution): 7,473 prompts",
                               "backend   trainer 1.2.0", "loss      mine 0.1.0 (/home/me/libmine.so)",
                               "generator drawer 1.0.0", "log       logs/exp_001"});
}

TEST_CASE("a CPU that was not asked for is told of") {
  Run run(2);
  for (Reply& reply : run.ranks) reply.device = "cpu", reply.card = "";
  CHECK(run.line("device") == "cpu (2 ranks)");
  CHECK(run.line("ranks") == "0 to 1 train, and generate by turns");
  run.config.cluster.device = "auto";
  CHECK(run.line("device") == "cpu (2 ranks; cluster.device auto has found no GPU that this build can use)");
}

TEST_CASE("cards of several kinds, ranks of several hosts") {
  Run run(4);
  run.ranks[3].card = "NVIDIA A100-SXM4-40GB";
  CHECK(run.line("device") == "cuda (4 ranks: 3 x NVIDIA H100 80GB HBM3, NVIDIA A100-SXM4-40GB)");
  run.config.cluster.num_nodes = 2;
  CHECK(run.line("device").starts_with("cuda (4 ranks on 2 hosts: "));
  CHECK(run.line("ranks") == "0 to 3 train, and generate by turns");  // devices are counted on each host
}

TEST_CASE("which ranks train and which generate, and how they share the model") {
  Run run(8);
  run.resolved = yaml::read_text(
      "policy:\n"
      "  megatron_cfg: {enabled: true, tensor_model_parallel_size: 2, pipeline_model_parallel_size: 2, "
      "expert_model_parallel_size: 4}\n"
      "  other_cfg: {enabled: false, tensor_parallel_size: 4}\n"
      "  text_cfg: none\n",
      "run.yaml");
  run.ranks[0].backend->dp_size = 2;
  CHECK(run.line("ranks") ==
        "0 to 7 (cuda:0 to cuda:7) train, TP 2, PP 2, EP 4, DP 2, and generate by turns");  // 2 x 2 x 2 ranks
  run.config.algorithm = config::Algorithm::sft;
  CHECK(run.line("ranks") == "0 to 7 (cuda:0 to cuda:7) train, TP 2, PP 2, EP 4, DP 2");

  Run apart(4);
  apart.placement = {{0, 2}, {2, 2}, 2};
  apart.ranks[2].generator = apart.ranks[0].generator;
  apart.ranks[0].backend->dp_size = 2;
  CHECK(apart.line("ranks") ==
        "0 to 1 (cuda:0 to cuda:1) train, DP 2; 2 to 3 (cuda:2 to cuda:3) generate in 1 group of 2 ranks");
  CHECK(apart.line("generator") == "drawer 1.0.0");
}

TEST_CASE("rows of several sets, of the algorithm's kind, and those to validate on") {
  Run run;
  run.validation_rows = 1319;
  run.add("puzzle", std::nullopt, nlohmann::ordered_json::object());
  CHECK(run.line("data") ==
        "train.jsonl (openai_format, output_key: solution)\npuzzle\nin all 7,473 prompts, 1,319 to validate on");
  run.config.data.train.erase(run.config.data.train.begin());
  run.rows = 1, run.validation_rows = 0;
  run.config.algorithm = config::Algorithm::dpo;
  CHECK(run.line("data") == "puzzle: 1 pair");
}

TEST_CASE("sizes of models that nobody knows, small, and in millions") {
  Run run;
  run.ranks[0].backend->num_parameters = 0;
  CHECK(run.line("model") == "Qwen/Qwen2.5-1.5B (bfloat16)");
  run.ranks[0].backend->num_parameters = 28'672;
  CHECK(run.line("model") == "Qwen/Qwen2.5-1.5B (28,672 parameters, bfloat16)");
  run.ranks[0].backend->num_parameters = 134'515'008;
  CHECK(run.line("model") == "Qwen/Qwen2.5-1.5B (134.5 M parameters, bfloat16)");
}
