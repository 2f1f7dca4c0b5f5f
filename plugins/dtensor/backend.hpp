// The backend plugin: the functions of hexad_backend_vtable over the sharded model.
#pragma once
#include <hexad/backend.hpp>

#include "modeling/backend/device_scope.hpp"
#include "modeling/backend/memory/meter.hpp"
#include "plugins/dtensor/gradient_sums.hpp"
#include "plugins/dtensor/residency.hpp"
#include "plugins/dtensor/runner.hpp"
#include "plugins/dtensor/settings.hpp"
#include "plugins/dtensor/weight_export.hpp"

namespace hexad::dtensor {

class Backend {
 public:
  Backend(const sdk::Call& call, const sdk::Config& config);

  void describe(const sdk::Call& call, hexad_backend_info& info);
  void forward(const sdk::Call& call, const hexad_forward_args& args);
  void train(const sdk::Call& call, const hexad_train_args& args);
  void step(const sdk::Call& call, const hexad_step_args& args, hexad_step_stats& stats);
  void keep(const sdk::Call& call, int32_t which);
  void load(const sdk::Call& call, const hexad_checkpoint_args& args);
  void save(const sdk::Call& call, const hexad_checkpoint_args& args);
  void weight_layout(const sdk::Call& call, hexad_weight_list& out);
  void weights_begin(const sdk::Call& call, const hexad_weights_request& request);
  void weights_next(const sdk::Call& call, hexad_weight_list& out);
  void weights_end();
  void offload(const sdk::Call& call, uint64_t what);
  void onload(const sdk::Call& call, uint64_t what);
  void memory(const sdk::Call& call, hexad_memory_stats& out);

 private:
  // The other's, inside of a scope that lasts until the members are made and hold the weights.
  Backend(const sdk::Call& call, const sdk::Config& config, const modeling::StreamScope& stream);
  // Device, stream and error translation of one call; remembers the memory in use afterwards.
  template <typename Body>
  void on_device(const sdk::Call& call, Body&& body);
  void load_model(const sdk::Call& call, const std::filesystem::path& dir, int32_t which);
  std::optional<modeling::MicroBatch> micro_batch(const hexad_batch& batch) const;
  void train_batch(const sdk::Call& call, const hexad_train_args& args, int64_t index);
  void move(uint64_t what, at::Device device);
  void measure_memory();

  Settings settings_;
  at::Device device_;
  modeling::MemoryReport memory_;
  ShardedModel model_;
  std::optional<modeling::RouterReplay> replay_;
  modeling::Fp8Casts casts_;
  Runner runner_;
  Residency residency_;
  GradientSums sums_;
  modeling::Optimizer optimizer_;
  WeightExport export_;
  bool trained_ = false;  // gradients are waiting for step
};

}  // namespace hexad::dtensor
