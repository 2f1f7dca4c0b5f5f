// The batches of a loader as elements, those of the next one read while the one before is trained on: a row of a large
// file costs the decoding of thousands.
#pragma once
#include <cstdint>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "core/data/dataset/loader.hpp"
#include "lib/table/lazy.hpp"

namespace hexad::data {

// T: what an element becomes when it is drawn. One thread at a time; a thread of its own reads ahead, so `elements`
// must allow others to read beside it.
template <typename T>
class Draws {
 public:
  // Reads the first batch from now on. Ends before epoch `max_epochs`.
  Draws(table::Lazy<T> elements, DataLoader loader, int64_t max_epochs)
      : elements_(std::move(elements)), loader_(std::move(loader)), max_epochs_(max_epochs), state_(loader_.state()) {
    read_ahead();
  }

  Draws(const Draws&) = delete;  // the thread knows where it stands
  Draws& operator=(const Draws&) = delete;

  // The next batch; goes on into the next epoch. Empty once max_epochs are through. Throws what making an element
  // threw, and does so again when it is called again.
  std::vector<T> next() {
    Coming coming = coming_.get();
    state_ = coming.state;
    read_ahead();
    return std::move(coming.batch);
  }

  int64_t epoch() const { return state_.epoch; }
  int64_t batches_per_epoch() const { return loader_.batches_per_epoch(); }

  // Where it stands behind the batch that next() gave last: nothing of what was read ahead.
  LoaderState state() const { return state_; }
  // As DataLoader::restore. What was read ahead is left.
  void restore(const LoaderState& state) {
    coming_.wait();
    loader_.restore(state);
    state_ = state;
    read_ahead();
  }

 private:
  struct Coming {
    std::vector<T> batch;
    LoaderState state;
  };

  void read_ahead() {
    coming_ = std::async(std::launch::async, [this] {
      std::optional<std::vector<int64_t>> indices;
      while (!indices && loader_.epoch() < max_epochs_) indices = loader_.next();
      return Coming{indices ? elements_.some(*indices) : std::vector<T>(), loader_.state()};
    });
  }

  table::Lazy<T> elements_;
  DataLoader loader_;  // of the thread that reads ahead, while there is one
  int64_t max_epochs_;
  LoaderState state_;
  std::shared_future<Coming> coming_;  // the last member: its end waits for the thread, which uses the others
};

}  // namespace hexad::data
