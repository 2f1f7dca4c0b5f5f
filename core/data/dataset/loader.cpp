#include "core/data/dataset/loader.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/json_integer.hpp"
#include "lib/base/random.hpp"

namespace hexad::data {
namespace {

// Epochs take the streams from here on; other uses of the seed have small ones.
constexpr uint64_t kEpochStream = uint64_t{1} << 32;

}  // namespace

void to_json(nlohmann::ordered_json& json, const LoaderState& state) {
  json = {{"epoch", state.epoch}, {"position", state.position}, {"size", state.size}, {"seed", state.seed}};
}

void from_json(const nlohmann::ordered_json& json, LoaderState& state) {
  state.epoch = count_of(json, "epoch");
  state.position = count_of(json, "position");
  state.size = count_of(json, "size");
  state.seed = count_of<uint64_t>(json, "seed");
}

DataLoader::DataLoader(int64_t size, const LoaderOptions& options) : size_(size), options_(options) {
  if (options.batch_size < 1)
    fail(ErrorKind::config, "data loader: want a positive batch size, got {}", options.batch_size);
  if (size < 1 || (options.drop_last && size < options.batch_size)) {
    fail(ErrorKind::data,
         "data loader: the dataset has {} records, fewer than the {} {} of a step; lower {} or raise the "
         "dataset's repeat",
         size, options.batch_size, options.what, options.batch_size_key);
  }
}

int64_t DataLoader::batches_per_epoch() const {
  return options_.drop_last ? size_ / options_.batch_size : (size_ + options_.batch_size - 1) / options_.batch_size;
}

std::optional<std::vector<int64_t>> DataLoader::next() {
  const int64_t count = std::min(options_.batch_size, size_ - position_);
  if (count == 0 || (options_.drop_last && count < options_.batch_size)) {
    ++epoch_;
    position_ = 0;
    order_ = {};
    return std::nullopt;
  }
  const int64_t begin = std::exchange(position_, position_ + count);
  std::vector<int64_t> batch(static_cast<size_t>(count));
  std::iota(batch.begin(), batch.end(), begin);
  if (!options_.shuffle) return batch;
  if (order_.empty()) order_ = random_permutation(size_, options_.seed, kEpochStream + static_cast<uint64_t>(epoch_));
  for (int64_t& index : batch) index = order_[static_cast<size_t>(index)];
  return batch;
}

LoaderState DataLoader::state() const { return {epoch_, position_, size_, options_.seed}; }

void DataLoader::restore(const LoaderState& state) {
  if (state.size != size_ || state.seed != options_.seed) {
    fail(ErrorKind::data,
         "data loader: the checkpoint was taken with {} records and seed {}, the data now has {} records and seed {}; "
         "resume with the same data and seed, or start anew in another checkpoint_dir",
         state.size, state.seed, size_, options_.seed);
  }
  if (state.epoch < 0 || state.position < 0 || state.position > size_) {
    fail(ErrorKind::data, "data loader: impossible state, epoch {} position {} of {} records", state.epoch,
         state.position, size_);
  }
  epoch_ = state.epoch;
  position_ = state.position;
  order_ = {};
}

}  // namespace hexad::data
