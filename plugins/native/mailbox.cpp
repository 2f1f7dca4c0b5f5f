#include "plugins/native/mailbox.hpp"

#include <algorithm>
#include <iterator>

namespace hexad::native {

void Mailbox::wake_locked() {
  unseen_ = true;
  changed_.notify_all();
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  wake_locked();
}

void Mailbox::submit(Sequences sequences) {
  const std::lock_guard lock(mutex_);
  std::unordered_set<uint64_t> ids;
  for (const auto& sequence : sequences) {
    const uint64_t id = sequence->request.id;
    if (live_.contains(id) || !ids.insert(id).second) {
      sdk::fail(HEXAD_INVALID_ARGUMENT, "request %llu: its id is that of a running request",
                static_cast<unsigned long long>(id));
    }
  }
  live_.merge(ids);
  std::move(sequences.begin(), sequences.end(), std::back_inserter(waiting_));
  wake_locked();
}

void Mailbox::cancel(std::span<const uint64_t> ids) {
  const std::lock_guard lock(mutex_);
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(cancelled_), [&](uint64_t id) { return live_.contains(id); });
  wake_locked();
}

int64_t Mailbox::hand_out(std::span<const hexad_completion*> events) {
  const std::lock_guard lock(mutex_);
  int64_t count = 0;
  while (!ready_.empty() && count < static_cast<int64_t>(events.size())) {
    std::unique_ptr<Event> event = std::move(ready_.front());
    ready_.pop_front();
    const hexad_completion* completion = &event->completion;
    events[count++] = completion;
    lent_[completion] = std::move(event);
  }
  return count;
}

void Mailbox::release(std::span<const hexad_completion* const> events) {
  const std::lock_guard lock(mutex_);
  for (const hexad_completion* event : events) lent_.erase(event);
}

void Mailbox::wait_until(std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, end, [&] { return unseen_; });
}

Mailbox::News Mailbox::look() {
  News news;
  const std::lock_guard lock(mutex_);
  for (const auto& sequence : waiting_) news.arrived.push_back({sequence->request.id, digest_of(sequence->request)});
  news.cancelled.swap(cancelled_);
  unseen_ = false;
  return news;
}

void Mailbox::look_away() {
  const std::lock_guard lock(mutex_);
  unseen_ = false;
}

Mailbox::Sequences Mailbox::take(const std::vector<Arrival>& arrived, std::chrono::milliseconds patience) {
  std::vector<size_t> places;
  std::unique_lock lock(mutex_);
  size_t place = 0;  // they mostly come in the order in which they were submitted
  for (const Arrival& arrival : arrived) {
    const auto is_it = [&](const auto& sequence) { return sequence->request.id == arrival.id; };
    const auto there = [&] {
      if (place < waiting_.size() && is_it(waiting_[place])) return true;
      place = static_cast<size_t>(std::ranges::find_if(waiting_, is_it) - waiting_.begin());
      return place < waiting_.size();
    };
    if (!there() && !changed_.wait_for(lock, patience, there)) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "request %llu, which rank 0 runs, was not submitted here: submit the same requests to every rank",
                static_cast<unsigned long long>(arrival.id));
    }
    if (const uint64_t digest = digest_of(waiting_[place]->request); digest != arrival.digest) {
      sdk::fail(HEXAD_FAILED_PRECONDITION,
                "request %llu is not what rank 0 was given under this number (digest %016llx, rank 0 has %016llx): "
                "submit the same requests to every rank",
                static_cast<unsigned long long>(arrival.id), static_cast<unsigned long long>(digest),
                static_cast<unsigned long long>(arrival.digest));
    }
    places.push_back(place++);
  }
  Sequences taken;
  for (const size_t found : places) taken.push_back(std::move(waiting_[found]));
  std::erase(waiting_, nullptr);
  return taken;
}

void Mailbox::deliver(std::vector<std::unique_ptr<Event>> events) {
  const std::lock_guard lock(mutex_);
  for (auto& event : events) {
    if (event->completion.finish != HEXAD_FINISH_NONE) {
      live_.erase(event->completion.id);
      std::erase(cancelled_, event->completion.id);  // its number may be given out again
    }
    ready_.push_back(std::move(event));
  }
}

}  // namespace hexad::native
