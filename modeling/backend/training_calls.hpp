// What every training backend does in the calls step, load and save, around its own parts.
#pragma once
#include <functional>

#include <hexad/services.hpp>

#include "modeling/parallel/optimizer.hpp"

namespace hexad::modeling {

struct StepParts {
  std::function<double()> gradient_norm;  // of the whole model
  std::function<void(double factor)> scale_gradients;
  std::function<void(double lr, double weight_decay)> update;
};

// One step with clipping: gradients whose norm is not finite are skipped; what args leave open (NaN) is `defaults`'.
// `trained`: gradients are waiting, which the step takes. Throws sdk::Error without them.
void clipped_step(const hexad_step_args& args, const OptimizerOptions& defaults, bool& trained, const StepParts& parts,
                  hexad_step_stats& stats);

// The parts of a checkpoint that args ask for. save refuses other weights than the current ones (sdk::Error).
using CheckpointPart = std::function<void(const char* dir)>;
void load_parts(const hexad_checkpoint_args& args, const CheckpointPart& model, const CheckpointPart& optimizer);
void save_parts(const hexad_checkpoint_args& args, const CheckpointPart& model, const CheckpointPart& optimizer);

}  // namespace hexad::modeling
