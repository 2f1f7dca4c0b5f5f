#include "modeling/backend/training_calls.hpp"

#include <cmath>

#include "modeling/parallel/grad_norm.hpp"

namespace hexad::modeling {
namespace {

double or_default(double value, double otherwise) { return std::isnan(value) ? otherwise : value; }

}  // namespace

void clipped_step(const hexad_step_args& args, const OptimizerOptions& defaults, bool& trained, const StepParts& parts,
                  hexad_step_stats& stats) {
  const bool discard = (args.flags & HEXAD_STEP_DISCARD) != 0;
  if (!trained && !discard) sdk::fail(HEXAD_FAILED_PRECONDITION, "step without gradients: call train first");
  trained = false;
  stats.grad_norm = 0;
  stats.skipped = 0;
  if (discard) return;
  stats.grad_norm = parts.gradient_norm();
  stats.skipped = !std::isfinite(stats.grad_norm);
  if (stats.skipped) return;
  const double coefficient = args.max_grad_norm > 0 ? clip_coefficient(stats.grad_norm, args.max_grad_norm) : 1.0;
  if (coefficient < 1.0) parts.scale_gradients(coefficient);
  parts.update(or_default(args.lr, defaults.lr), or_default(args.weight_decay, defaults.weight_decay));
}

void load_parts(const hexad_checkpoint_args& args, const CheckpointPart& model, const CheckpointPart& optimizer) {
  if (args.what & HEXAD_CHECKPOINT_MODEL) model(args.weights_uri);
  if (args.what & HEXAD_CHECKPOINT_OPTIMIZER) optimizer(args.optimizer_uri);
}

void save_parts(const hexad_checkpoint_args& args, const CheckpointPart& model, const CheckpointPart& optimizer) {
  if (args.which != HEXAD_WEIGHTS_CURRENT)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "save writes the current weights (0), got %d", args.which);
  load_parts(args, model, optimizer);
}

}  // namespace hexad::modeling
