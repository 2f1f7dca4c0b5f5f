// The generator's other half: weights, pause, sleep.
#include "plugins/native/device_scope.hpp"
#include "plugins/native/generator.hpp"
#include "plugins/native/model/weight_sums.hpp"

namespace hexad::native {

// Between two passes; the poller steps aside.
template <typename Function>
void Generator::exclusively(const sdk::Call& call, Function&& function) {
  ++waiting_for_engine_;
  {
    const std::lock_guard engine_lock(engine_mutex_);
    --waiting_for_engine_;
    come_apart(call);
    on_device(call, settings_.device, function);
  }
  const std::lock_guard lock(state_mutex_);
  signal();
}

// Without weights in force: what fails on one rank leaves none on any.
template <typename Function>
void Generator::all_or_none(Function&& function) {
  try {
    agreement_->together(function);
  } catch (const c10::DistError&) {  // what the others do is not known, and a pass may never end
    throw;
  } catch (const std::exception&) {
    engine_->drop_weights();
    throw;
  }
}

void Generator::update_begin(const sdk::Call& call, int64_t version) {
  WeightMap places;
  if (!engine_->has_weights()) exclusively(call, [&] { all_or_none([&] { places = engine_->places(); }); });
  update_.emplace(model_, settings_.dtype, settings_.device, std::move(places), settings_.fp8,
                  lockstep_->replica().shard());
  update_failure_.clear();
  update_version_ = version;
  updating_ = true;
}

void Generator::update_bucket(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (!update_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_bucket without update_begin");
  const bool alone = lockstep_->replica().alone();
  if (!alone && !update_failure_.empty()) return;
  try {
    on_device(call, settings_.device, [&] { update_->add(bucket); });
  } catch (const std::exception& error) {
    update_failure_ = error.what();
    if (alone) throw;
  }
}

void Generator::update_end(const sdk::Call& call, bool commit) {
  if (!update_) sdk::fail(HEXAD_FAILED_PRECONDITION, "update_end without update_begin");
  const struct End {
    std::atomic<bool>& updating;
    ~End() { updating = false; }
  } end{updating_};
  WeightUpdate update = *std::exchange(update_, std::nullopt);
  if (!commit) return agreement_->decline("the weight update was broken off");
  WeightMap weights;
  with_sdk_errors([&] {
    agreement_->together([&] {
      if (!update_failure_.empty()) {
        sdk::fail(HEXAD_FAILED_PRECONDITION, "the weight update cannot be committed, a bucket of it was refused: %s",
                  update_failure_.c_str());
      }
      weights = update.finish();
    });
  });
  exclusively(call, [&] {
    all_or_none([&] { engine_->set_weights(std::move(weights), update_version_); });
    ever_had_weights_ = true;
  });
  on_device(call, settings_.device, [&] { wait_for_stream(settings_.device); });
}

void Generator::report_weight_sums(const sdk::Call& call) {
  std::map<std::string, int64_t> sums;
  const Replica& replica = lockstep_->replica();
  exclusively(call, [&] { sums = weight_sums(engine_->weights(), weight_parts(model_, replica.shard()), replica); });
  try {
    for (const auto& [name, sum] : sums) call.metric(("weight_sum/" + name).c_str(), double(sum), 1, HEXAD_REDUCE_LAST);
  } catch (const sdk::Error& error) {
    if (error.code() != HEXAD_UNIMPLEMENTED) throw;  // a host that takes no metrics in this call
  }
}

void Generator::weight_layout(const sdk::Call& call, hexad_weight_list& out) {
  if (layout_.slices.empty()) {
    layout_.parts = weight_parts(model_, lockstep_->replica().shard());
    const auto code = static_cast<uint8_t>(settings_.dtype == at::kBFloat16 ? kDLBfloat : kDLFloat);
    const DLDataType dtype{code, static_cast<uint8_t>(8 * c10::elementSize(settings_.dtype)), 1};
    for (const WeightPart& part : layout_.parts) {
      layout_.slices.push_back({part.name.c_str(), nullptr, part.global_shape.data(), part.offsets.data(),
                                part.shape.data(), static_cast<int32_t>(part.shape.size()), dtype});
    }
  }
  report_weight_sums(call);
  out.slices = layout_.slices.data();
  out.count = static_cast<int64_t>(layout_.slices.size());
}

void Generator::pause(const sdk::Call& call) {
  exclusively(call, [&] { paused_ = true; });
}

void Generator::resume(const sdk::Call& call) {
  exclusively(call, [&] { paused_ = false; });
}

void Generator::sleep(const sdk::Call& call, int32_t level) {
  if (level != 1 && level != 2) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "sleep: got level %d, wanted 1 (free the KV cache) or 2 (free the weights too)",
              level);
  }
  exclusively(call, [&] { engine_->sleep(level == 2); });
}

void Generator::wake(const sdk::Call& call) {
  exclusively(call, [&] { engine_->wake(); });
}

void Generator::flush_cache(const sdk::Call& call) {
  exclusively(call, [&] { engine_->flush_prompts(); });
}

}  // namespace hexad::native
