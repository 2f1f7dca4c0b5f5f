#include "plugins/native/refit.hpp"

#include <map>
#include <utility>

#include "plugins/native/device_scope.hpp"
#include "plugins/native/model/weight_sums.hpp"

namespace hexad::native {

Refit::Refit(const Settings& settings, modeling::ModelConfig model, EngineLoop& loop)
    : model_(std::move(model)),
      dtype_(settings.dtype),
      fp8_(settings.fp8),
      loop_(loop),
      agreement_(loop.replica(), loop.replica().aside()),
      had_weights_(loop.engine().has_weights()) {}

// Without weights in force: what fails on one rank leaves none on any.
void Refit::all_or_none(Engine& engine, const std::function<void()>& body) const {
  try {
    agreement_.together(body);
  } catch (const c10::DistError&) {  // what the others do is not known, and a pass may never end
    throw;
  } catch (const std::exception&) {
    engine.drop_weights();
    throw;
  }
}

void Refit::begin(const sdk::Call& call, int64_t version) {
  WeightMap places;
  if (!loop_.engine().has_weights()) {
    loop_.exclusively(call, [&](Engine& engine) { all_or_none(engine, [&] { places = engine.places(); }); });
  }
  update_.emplace(model_, dtype_, loop_.device(), std::move(places), fp8_, loop_.replica().shard());
  failure_.clear();
  version_ = version;
  in_progress_ = true;
}

void Refit::bucket(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (!update_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_bucket without update_begin");
  const bool alone = loop_.replica().alone();
  if (!alone && !failure_.empty()) return;
  try {
    on_device(call, loop_.device(), [&] { update_->add(bucket); });
  } catch (const std::exception& error) {
    failure_ = error.what();
    if (alone) throw;
  }
}

// The complete set, when every rank has it.
WeightMap Refit::finish(WeightUpdate& update) const {
  WeightMap weights;
  with_sdk_errors([&] {
    agreement_.together([&] {
      if (!failure_.empty()) {
        sdk::fail(HEXAD_FAILED_PRECONDITION, "the weight update cannot be committed, a bucket of it was refused: %s",
                  failure_.c_str());
      }
      weights = update.finish();
    });
  });
  return weights;
}

void Refit::end(const sdk::Call& call, bool commit) {
  if (!update_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_end without update_begin");
  const struct End {
    std::atomic<bool>& in_progress;
    ~End() { in_progress = false; }
  } end{in_progress_};
  WeightUpdate update = *std::exchange(update_, std::nullopt);
  if (!commit) return agreement_.decline("the weight update was broken off");
  WeightMap weights = finish(update);
  loop_.exclusively(call, [&](Engine& engine) {
    all_or_none(engine, [&] { engine.set_weights(std::move(weights), version_); });
    had_weights_ = true;
  });
  on_device(call, loop_.device(), [&] { wait_for_stream(loop_.device()); });
}

void Refit::layout(const sdk::Call& call, hexad_weight_list& out) {
  if (slices_.empty()) {
    parts_ = weight_parts(model_, loop_.replica().shard());
    const auto code = static_cast<uint8_t>(dtype_ == at::kBFloat16 ? kDLBfloat : kDLFloat);
    const DLDataType dtype{code, static_cast<uint8_t>(8 * c10::elementSize(dtype_)), 1};
    for (const WeightPart& part : parts_) {
      slices_.push_back({part.name.c_str(), nullptr, part.global_shape.data(), part.offsets.data(), part.shape.data(),
                         static_cast<int32_t>(part.shape.size()), dtype});
    }
  }
  report_sums(call);
  out.slices = slices_.data();
  out.count = static_cast<int64_t>(slices_.size());
}

void Refit::report_sums(const sdk::Call& call) const {
  std::map<std::string, int64_t> sums;
  const Replica& replica = loop_.replica();
  loop_.exclusively(call, [&](Engine& engine) {
    sums = weight_sums(engine.weights(), weight_parts(model_, replica.shard()), replica);
  });
  try {
    for (const auto& [name, sum] : sums) call.metric(("weight_sum/" + name).c_str(), double(sum), 1, HEXAD_REDUCE_LAST);
  } catch (const sdk::Error& error) {
    if (error.code() != HEXAD_UNIMPLEMENTED) throw;  // a host that takes no metrics in this call
  }
}

}  // namespace hexad::native
