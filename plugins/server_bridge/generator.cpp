#include "plugins/server_bridge/generator.hpp"

namespace hexad::bridge {
namespace {

Log log_to(const hexad_host* host) {
  return [host](int32_t level, const std::string& text) {
    if (host->log_enabled(level)) host->log(nullptr, level, text.data(), text.size());
  };
}

int rank_of(const sdk::Config& config) { return static_cast<int>(config.get<int64_t>("replica_index", 0)); }

}  // namespace

Generator::Generator(const sdk::Call& call, const sdk::Config& config, Settings settings,
                     std::unique_ptr<Dialect> dialect)
    : settings_(std::move(settings)),
      dialect_(std::move(dialect)),
      work_(settings_.refit_dir, dialect_->names().program,
            std::string("policy.generation.") + dialect_->names().section + ".refit_dir"),
      servers_(*dialect_, settings_, work_, rank_of(config), outbox_, log_to(call.host())),
      update_(*dialect_, settings_, servers_, work_),
      inbox_(settings_, servers_.loop(), servers_.fleet(), outbox_,
             // In this order: an update that ends between the two has left weights.
             [this] { return update_.under_way() || servers_.has_weights(); }) {}

void Generator::describe(const sdk::Call&, hexad_generator_info& info) {
  info.caps = HEXAD_GEN_STREAMING | HEXAD_GEN_UPDATE_INFLIGHT | HEXAD_GEN_SLEEP;
  if (settings_.routes) info.caps |= HEXAD_GEN_ROUTED_EXPERTS;
  info.max_sequences = servers_.size() * settings_.max_running;
  info.max_model_len = settings_.max_length;
  info.kv_capacity = 0;
  info.weight_form = HEXAD_FORM_FULL;
}

}  // namespace hexad::bridge
