#include "lib/table/lazy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/base/random.hpp"

using namespace hexad;
using table::Lazy;
using Numbers = std::vector<int64_t>;

namespace {

// 0 to size - 1; notes what was made.
Lazy<int64_t> counting(int64_t size, Numbers* made = nullptr) {
  return {size, [made](int64_t i) {
            if (made) made->push_back(i);
            return i;
          }};
}

template <typename T>
std::vector<T> all(const Lazy<T>& list) {
  std::vector<T> elements;
  for (const T& element : list) elements.push_back(element);
  CHECK(std::ssize(elements) == list.size());
  return elements;
}

}  // namespace

TEST_CASE("elements are made when they are asked for, each time anew") {
  Numbers made;
  const Lazy<int64_t> list = counting(1'000'000'000'000, &made);
  const Lazy<std::string> texts =
      list.first(500'000'000'000).repeated(2).map<std::string>([](int64_t element, int64_t index) {
        return std::to_string(element) + "@" + std::to_string(index);
      });
  CHECK(texts.size() == 1'000'000'000'000);
  CHECK(made.empty());
  CHECK(texts[500'000'000'003] == "3@500000000003");
  CHECK(texts[3] == "3@3");
  CHECK(made == Numbers{3, 3});
}

TEST_CASE("some come in the order that is asked for, and are made as they lie") {
  Numbers made;
  const Numbers wanted = {7, 2, 9, 2, 0};
  CHECK(counting(10, &made).some(wanted) == wanted);
  CHECK(made == Numbers{0, 2, 2, 7, 9});
}

TEST_CASE("a range is as long as asked for, or as the list goes") {
  const Lazy<int64_t> list = counting(10);
  CHECK(list.range(2, 3) == Numbers{2, 3, 4});
  CHECK(list.range(8, INT64_MAX) == Numbers{8, 9});
  CHECK(list.range(10, 3).empty());
}

TEST_CASE("a list is parted as one that is in memory is") {
  for (const int64_t size : {1, 2, 3, 17, 64}) {
    for (int64_t count = 0; count <= size; ++count) {
      Numbers taken = random_permutation(size, static_cast<uint64_t>(count), 1);
      taken.resize(static_cast<size_t>(count));
      std::ranges::sort(taken);
      Numbers others;
      for (int64_t i = 0; i < size; ++i) {
        if (!std::ranges::binary_search(taken, i)) others.push_back(i);
      }
      const auto [some, rest] = counting(size).parted(taken);
      CHECK(all(some) == taken);
      CHECK(all(rest) == others);
    }
  }
}

TEST_CASE("lists are joined, repeated and cut as vectors are") {
  const Lazy<int64_t> letters(Numbers{4, 5});
  CHECK(all(Lazy<int64_t>::joined({letters, {}, counting(1), letters.repeated(2)})) == Numbers{4, 5, 0, 4, 5, 4, 5});
  CHECK(all(letters.first(1)) == Numbers{4});
  CHECK(all(letters.first(9)) == Numbers{4, 5});
  CHECK(Lazy<int64_t>::joined({}).empty());
  CHECK(Lazy<int64_t>().empty());
}
