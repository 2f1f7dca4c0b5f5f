// Modified first-fit decreasing (Johnson & Garey 1985) as NeMo-RL runs it: sizes are large (over C/2), medium (over
// C/3), small (over C/6) or tiny, and the leftovers of the last phase go to the emptiest bin (worst fit), not to the
// first.
#include <algorithm>
#include <optional>

#include "lib/base/error.hpp"
#include "core/data/packing/packer.hpp"

namespace hexad::data {
namespace {

struct Item {
  int64_t index;
  int64_t length;
};

struct Bin {
  std::vector<Item> items;
  int64_t filled = 0;
  void add(Item item) {
    items.push_back(item);
    filled += item.length;
  }
};

bool longer(const Item& a, const Item& b) { return a.length > b.length; }
bool shorter(const Item& a, const Item& b) { return a.length < b.length; }

struct Classes {
  std::vector<Item> large, medium, small, tiny;  // large and medium descending, small and tiny ascending
};

Classes classify(std::span<const int64_t> lengths, int64_t capacity) {
  Classes classes;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths[i];
    auto& where = 2 * length > capacity   ? classes.large
                  : 3 * length > capacity ? classes.medium
                  : 6 * length > capacity ? classes.small
                                          : classes.tiny;
    where.push_back({static_cast<int64_t>(i), length});
  }
  std::stable_sort(classes.large.begin(), classes.large.end(), longer);
  std::stable_sort(classes.medium.begin(), classes.medium.end(), longer);
  std::stable_sort(classes.small.begin(), classes.small.end(), shorter);
  std::stable_sort(classes.tiny.begin(), classes.tiny.end(), shorter);
  return classes;
}

// Takes the first item of `items` (in descending order) that is no longer than `room`.
std::optional<Item> take_longest_fitting(std::vector<Item>& items, int64_t room) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.length <= room; });
  if (found == items.end()) return std::nullopt;
  const Item item = *found;
  items.erase(found);
  return item;
}

// Backwards over the bins without a medium item: the smallest small item and the largest other one that fits beside it.
void add_small_pairs(std::vector<Bin>& bins, std::vector<Item>& small, int64_t capacity) {
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) {
    if (bin->items.size() > 1 || small.size() < 2) continue;
    const int64_t room = capacity - bin->filled;
    if (small[0].length + small[1].length > room) continue;
    const Item first = small.front();
    size_t second = small.size() - 1;
    while (small[second].length > room - first.length) --second;
    bin->add(first);
    bin->add(small[second]);
    small.erase(small.begin() + static_cast<std::ptrdiff_t>(second));
    small.erase(small.begin());
  }
}

// Every item goes to the emptiest bin if it fits there, else to a new one; the bins stay sorted by fill.
std::vector<Bin> worst_fit(std::span<const Item> items, int64_t capacity) {
  std::vector<Bin> bins;
  for (const Item& item : items) {
    Bin bin;
    if (!bins.empty() && item.length <= capacity - bins.front().filled) {
      bin = std::move(bins.front());
      bins.erase(bins.begin());
    }
    bin.add(item);
    const auto place =
        std::upper_bound(bins.begin(), bins.end(), bin, [](const Bin& a, const Bin& b) { return a.filled < b.filled; });
    bins.insert(place, std::move(bin));
  }
  return bins;
}

}  // namespace

Bins pack_modified_first_fit_decreasing(std::span<const int64_t> lengths, int64_t capacity) {
  if (capacity <= 0) fail(ErrorKind::config, "sequence packing: the bin capacity must be positive, got {}", capacity);
  for (int64_t length : lengths) {
    if (length <= 0) {
      fail(ErrorKind::data, "sequence packing: modified_first_fit_decreasing wants positive lengths, got {}", length);
    }
    if (length > capacity) {
      fail(ErrorKind::data,
           "sequence packing: a sequence of {} tokens (padded) exceeds the bin capacity of {}; raise the micro-batch "
           "token budget (train_mb_tokens, logprob_mb_tokens) or lower the sequence length",
           length, capacity);
    }
  }
  Classes classes = classify(lengths, capacity);
  std::vector<Bin> bins(classes.large.size());
  for (size_t i = 0; i < bins.size(); ++i) bins[i].add(classes.large[i]);
  for (Bin& bin : bins) {
    if (auto item = take_longest_fitting(classes.medium, capacity - bin.filled)) bin.add(*item);
  }
  add_small_pairs(bins, classes.small, capacity);

  std::vector<Item> rest = std::move(classes.medium);
  rest.insert(rest.end(), classes.small.begin(), classes.small.end());
  rest.insert(rest.end(), classes.tiny.begin(), classes.tiny.end());
  std::stable_sort(rest.begin(), rest.end(), longer);
  for (Bin& bin : bins) {
    while (auto item = take_longest_fitting(rest, capacity - bin.filled)) bin.add(*item);
  }
  for (Bin& bin : worst_fit(rest, capacity)) bins.push_back(std::move(bin));

  Bins result(bins.size());
  for (size_t i = 0; i < bins.size(); ++i) {
    for (const Item& item : bins[i].items) result[i].push_back(item.index);
  }
  return result;
}

}  // namespace hexad::data
