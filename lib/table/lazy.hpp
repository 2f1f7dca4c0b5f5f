// Lists whose elements are made when they are asked for, each time anew: a table is never in memory as a whole.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace hexad::table {

// Copies share what makes the elements. Threads may share them where what makes them may be called by several at once,
// as Rows may.
template <typename T>
class Lazy {
 public:
  using Make = std::function<T(int64_t index)>;

  Lazy() = default;
  // `make` is called with 0 <= index < size, and what it throws passes.
  Lazy(int64_t size, Make make) : size_(size), make_(std::move(make)) {}
  // Elements that are there.
  Lazy(std::vector<T> made) : size_(std::ssize(made)) {  // NOLINT(google-explicit-constructor): a vector is such a list
    make_ = [all = std::make_shared<const std::vector<T>>(std::move(made))](int64_t i) {
      return (*all)[static_cast<size_t>(i)];
    };
  }

  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](int64_t index) const { return make_(index); }

  // Those at `indices`, in that order. They are made as they lie, so that neighbours are read together.
  std::vector<T> some(std::span<const int64_t> indices) const {
    std::vector<size_t> order(indices.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t place) { return indices[place]; });
    std::vector<T> made(indices.size());
    for (const size_t place : order) made[place] = make_(indices[place]);
    return made;
  }

  // Those from `begin` on, at most so many.
  std::vector<T> range(int64_t begin, int64_t most) const {
    std::vector<T> made;
    for (const int64_t end = begin + std::min(most, size_ - begin); begin < end; ++begin) made.push_back(make_(begin));
    return made;
  }

  // The first ones, at most so many.
  Lazy first(int64_t most) const { return {std::min(most, size_), make_}; }
  // The list so many times, one after the other.
  Lazy repeated(int64_t times) const {
    return {size_ * times, [make = make_, once = size_](int64_t i) { return make(i % once); }};
  }
  // Those at `sorted` (ascending), and the others; both in their order.
  std::pair<Lazy, Lazy> parted(std::vector<int64_t> sorted) const {
    const auto taken = std::make_shared<const std::vector<int64_t>>(std::move(sorted));
    const int64_t count = std::ssize(*taken);
    return {{count, [make = make_, taken](int64_t i) { return make((*taken)[static_cast<size_t>(i)]); }},
            {size_ - count, [make = make_, taken, count](int64_t i) {
               // As many are taken out before the i-th that stays: taken[k] - k of those that stay lie before taken[k].
               int64_t least = 0, most = count;
               while (least < most) {
                 const int64_t middle = (least + most) / 2;
                 if ((*taken)[static_cast<size_t>(middle)] - middle > i)
                   most = middle;
                 else
                   least = middle + 1;
               }
               return make(i + least);
             }}};
  }

  // What `made_of` makes of each element and its index.
  template <typename U, typename MadeOf>
  Lazy<U> map(MadeOf made_of) const {
    return {size_, [make = make_, made_of = std::move(made_of)](int64_t i) { return made_of(make(i), i); }};
  }

  // One list of several.
  static Lazy joined(std::vector<Lazy> parts) {
    std::vector<int64_t> ends;
    for (const Lazy& part : parts) ends.push_back((ends.empty() ? 0 : ends.back()) + part.size());
    const int64_t size = ends.empty() ? 0 : ends.back();
    return {size, [parts = std::move(parts), ends = std::move(ends)](int64_t i) {
              const auto part = static_cast<size_t>(std::ranges::upper_bound(ends, i) - ends.begin());
              return parts[part][i - (part == 0 ? 0 : ends[part - 1])];
            }};
  }

  // For loops over all.
  struct Iterator {
    const Lazy* list;
    int64_t index;
    T operator*() const { return (*list)[index]; }
    Iterator& operator++() {
      ++index;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

 private:
  int64_t size_ = 0;
  Make make_;
};

}  // namespace hexad::table
