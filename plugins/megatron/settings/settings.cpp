#include "plugins/megatron/settings/settings.hpp"

#include "modeling/error.hpp"
#include "modeling/parallel/tensor/plan.hpp"

namespace hexad::megatron {
namespace {

std::string key(const char* name) { return std::string("megatron_cfg.") + name; }

std::optional<int64_t> optional_size(const sdk::Config& config, const char* name) {
  return config.find<int64_t>(key(name).c_str());
}
int64_t size(const sdk::Config& config, const char* name) { return config.get<int64_t>(key(name).c_str(), 1); }
bool flag(const sdk::Config& config, const char* name, bool otherwise) {
  return config.get(key(name).c_str(), otherwise);
}

// Chunks of a rank: as they are given, or as many as hold so many layers each.
std::optional<int64_t> virtual_stages(const sdk::Config& config, int64_t layers, int64_t ranks) {
  const char* const by_layers = "num_layers_per_virtual_pipeline_stage";
  const std::optional<int64_t> stages = optional_size(config, "virtual_pipeline_model_parallel_size"),
                               each = optional_size(config, by_layers);
  if (stages || !each) return stages;
  if (*each < 1 || ranks < 1 || layers % (ranks * *each) != 0)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.%s is %lld, wanted a divisor of the layers of a rank, %lld / %lld", by_layers,
              static_cast<long long>(*each), static_cast<long long>(layers), static_cast<long long>(ranks));
  const int64_t count = layers / (ranks * *each);
  return count > 1 ? std::optional(count) : std::nullopt;
}

void read_grid(const sdk::Config& config, int64_t world, Settings& settings) {
  model::ParallelSizes& sizes = settings.sizes;
  sizes.world = world;
  sizes.tensor = size(config, "tensor_model_parallel_size");
  sizes.pipeline = size(config, "pipeline_model_parallel_size");
  sizes.context = size(config, "context_parallel_size");
  sizes.expert = size(config, "expert_model_parallel_size");
  sizes.expert_tensor = size(config, "expert_tensor_parallel_size");
  sizes.virtual_pipeline = virtual_stages(config, settings.model.num_layers, sizes.pipeline);
  sizes.order = config.get(key("rank_order").c_str(), sizes.order.c_str());
  sizes.optimizer_instances = size(config, "distributed_data_parallel_config.num_distributed_optimizer_instances");
  const model::ParallelGrid checks_sizes(sizes);
  settings.context =
      modeling::read_context_settings(config, "megatron_cfg", settings.model, sizes.context, sizes.tensor);
  if (settings.context.inner > 1)
    sizes.hierarchical_context = {settings.context.inner, sizes.context / settings.context.inner};
  settings.sequence_parallel = flag(config, "sequence_parallel", false);
  if (settings.sequence_parallel && sizes.tensor == 1) settings.sequence_parallel = false;  // nothing to divide
  constexpr int64_t kSplits = 4;  // as Transformer Engine splits what it pipelines
  settings.token_runs = flag(config, "tp_comm_overlap", false) ? kSplits : 1;
  if (settings.token_runs > 1 && settings.fp8 != modeling::Fp8::off)
    sdk::fail(
        HEXAD_UNIMPLEMENTED,
        "policy.megatron_cfg.tp_comm_overlap is true with fp8_cfg.enabled: not available together, set it to false");
}

// Without a word of the configuration an interleaved schedule overlaps, and others send in batches.
void read_stage_links(const sdk::Config& config, Settings& settings) {
  const std::optional<bool> overlap = config.find<bool>(key("overlap_p2p_comm").c_str()),
                            batch = config.find<bool>(key("batch_p2p_comm").c_str());
  settings.overlap_stages =
      settings.sizes.pipeline > 1 && overlap.value_or(settings.sizes.virtual_pipeline && !batch.value_or(false));
  settings.batch_stages = batch.value_or(!settings.overlap_stages);
  const std::optional<int64_t> group = optional_size(config, "microbatch_group_size_per_vp_stage");
  if (!settings.sizes.virtual_pipeline) return;
  settings.stage_group = group;
  if (settings.stage_group.value_or(settings.sizes.pipeline) < settings.sizes.pipeline)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.megatron_cfg.microbatch_group_size_per_vp_stage is %lld, wanted at least "
              "pipeline_model_parallel_size, which is %lld",
              static_cast<long long>(*settings.stage_group), static_cast<long long>(settings.sizes.pipeline));
}

void read_placement(const sdk::Config& config, Settings& settings) {
  model::PlacementOptions& placement = settings.placement;
  placement.layers = settings.model.num_layers;
  placement.pipeline = settings.sizes.pipeline;
  placement.virtual_pipeline = settings.sizes.virtual_pipeline;
  placement.first_stage = optional_size(config, "num_layers_in_first_pipeline_stage");
  placement.last_stage = optional_size(config, "num_layers_in_last_pipeline_stage");
  placement.count_embedding = flag(config, "account_for_embedding_in_pipeline_split", false);
  placement.count_loss = flag(config, "account_for_loss_in_pipeline_split", false);
  const nlohmann::json written = modeling::json_at(config, "megatron_cfg.pipeline_model_parallel_layout");
  if (written.is_string()) placement.layout = model::parse_layer_layout(written.get<std::string>());
  if (written.is_array())
    placement.layout = model::parse_layer_layout(written.get<std::vector<std::vector<std::string>>>());
}

void require_divisor(const char* size_key, int64_t size, const char* what, int64_t amount) {
  if (amount % size == 0) return;
  int64_t fits = size;
  while (amount % fits != 0) --fits;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.megatron_cfg.%s is %lld, which does not divide %s = %lld: take %lld",
            size_key, static_cast<long long>(size), what, static_cast<long long>(amount), static_cast<long long>(fits));
}

void check_experts(const Settings& settings) {
  const model::ParallelSizes& sizes = settings.sizes;
  if (!settings.model.moe) {
    if (sizes.expert > 1)
      sdk::fail(HEXAD_INVALID_ARGUMENT,
                "policy.megatron_cfg.expert_model_parallel_size is %lld, but the model has no experts: set it to 1",
                static_cast<long long>(sizes.expert));
    return;
  }
  const modeling::MoeConfig& moe = *settings.model.moe;
  if (sizes.tensor > 1 && !settings.sequence_parallel)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "a model with experts wants policy.megatron_cfg.sequence_parallel with tensor_model_parallel_size %lld: "
              "set it to true, so that every rank routes its own tokens",
              static_cast<long long>(sizes.tensor));
  require_divisor("expert_model_parallel_size", sizes.expert, "the number of experts", moe.num_experts);
  require_divisor("expert_tensor_parallel_size", settings.expert_tensor(), "the width of an expert",
                  moe.intermediate_size);
  require_divisor("tensor_model_parallel_size", sizes.tensor, "the width of the shared experts",
                  moe.shared_intermediate_size);
}

void check_model(const Settings& settings) {
  modeling::check_tensor_parallel(settings.model, settings.sizes.tensor);
  check_experts(settings);
}

}  // namespace

Settings read_settings(const sdk::Config& config, int64_t world) {
  Settings settings;
  static_cast<modeling::ModelSettings&>(settings) = modeling::read_model_settings(config);
  settings.fp8 = modeling::read_fp8(config, "megatron_cfg", "blockwise");
  read_grid(config, world, settings);
  read_stage_links(config, settings);
  read_placement(config, settings);
  settings.moe = read_moe_settings(config, settings.model);
  settings.moe.replay = modeling::replay_source(config, settings.model);
  settings.recompute = read_recompute(config);
  read_optimizer(config, settings);
  read_data_parallel(config, settings);
  check_model(settings);
  return settings;
}

}  // namespace hexad::megatron
