// What the matrix covers is counted, so that a row which is taken out is missed.
#include <fmt/format.h>

#include "tests/plugins/layouts/layout_row.hpp"

using layouts_test::matrix;
using layouts_test::Row;

namespace {

using Names = std::set<std::string>;

// Two of `dimensions` that no row of the kind has at once; empty when all pairs are there. A dimension that is
// another's part (sp of tp, vpp of pp, hsdp of dp) pairs with it by being there at all.
std::vector<std::string> missing_pairs(const std::string& backend, bool experts, bool padded, const Names& dimensions) {
  std::vector<std::string> missing;
  for (const std::string& a : dimensions) {
    for (const std::string& b : dimensions) {
      if (!(a < b)) continue;
      bool found = false;
      for (const Row& row : matrix()) {
        const Names has = row.dimensions();
        found |= row.backend == backend && row.has_experts() == experts && row.packing.padded == padded &&
                 !row.has("bf16") && has.count(a) && has.count(b);
      }
      if (!found)
        missing.push_back(
            fmt::format("{} {} {} {} x {}", backend, experts ? "moe" : "dense", padded ? "padded" : "packed", a, b));
    }
  }
  return missing;
}

std::string join(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

size_t count(const std::function<bool(const Row&)>& selects) {
  return static_cast<size_t>(std::count_if(matrix().begin(), matrix().end(), selects));
}

}  // namespace

TEST_CASE("the matrix has at least 80 layouts, none twice, on up to 16 ranks") {
  std::set<std::string> texts;
  for (const Row& row : matrix()) {
    CHECK_MESSAGE(texts.insert(row.text).second, row.text);
    CHECK_MESSAGE(row.world() <= 16, row.text);
  }
  CHECK(count([](const Row& row) { return row.world() <= 8 && row.backend == "megatron"; }) >= 80);
  CHECK(count([](const Row& row) { return row.world() <= 8 && row.backend == "dtensor"; }) >= 30);
}

TEST_CASE("the matrix has every pair of dimensions, packed and padded, dense and with experts") {
  const Names dense = {"tp", "sp", "cp", "pp", "vpp", "dp"}, mesh = {"tp", "sp", "cp", "dp", "hsdp"};
  Names experts = dense;
  experts.insert({"ep", "etp"});
  for (const bool padded : {false, true}) {
    CHECK(join(missing_pairs("megatron", false, padded, dense)) == "");
    CHECK(join(missing_pairs("megatron", true, padded, experts)) == "");
    CHECK(join(missing_pairs("dtensor", false, padded, mesh)) == "");
    CHECK(join(missing_pairs("dtensor", true, padded, {"cp", "dp", "hsdp"})) == "");
  }
  CHECK(join(missing_pairs("dtensor", true, /*padded=*/false, {"tp", "sp", "cp", "dp", "hsdp", "ep"})) == "");
}

TEST_CASE("the matrix has several triples, and all six dimensions at once, dense and with experts") {
  std::set<Names> triples;
  for (const Row& row : matrix()) {
    const Names has = row.dimensions();
    for (const std::string& a : has)
      for (const std::string& b : has)
        for (const std::string& c : has)
          if (a < b && b < c) triples.insert({a, b, c});
  }
  CHECK(triples.size() >= 50);
  const auto all_six = [](bool experts) {
    return count([&](const Row& row) {
      Names wanted = {"tp", "sp", "cp", "pp", "dp"};
      if (experts) wanted.insert("ep");
      const Names has = row.dimensions();
      return row.world() == 16 && row.has_experts() == experts && row.backend == "megatron" &&
             std::includes(has.begin(), has.end(), wanted.begin(), wanted.end());
    });
  };
  CHECK(all_six(false) >= 1);
  CHECK(all_six(true) >= 1);
}

TEST_CASE("the short part of the matrix has every model, dimension, word and setting of it, in either backend") {
  const auto properties = [](const Row& row) {
    Names names = row.dimensions();
    names.insert(row.family);
    names.insert(row.words.begin(), row.words.end());
    const backend_test::json settings = row.settings.flatten();
    for (const auto& [key, value] : settings.items()) names.insert(fmt::format("{}={}", key, value.dump()));
    for (const char* const packing : {"packed", "padded"})
      if (row.packing.padded == (packing == std::string("padded")))
        for (const std::string& dimension : row.dimensions()) names.insert(packing + (" " + dimension));
    return names;
  };
  for (const std::string backend : {"megatron", "dtensor"}) {
    Names all, in_short;
    for (const Row& row : matrix()) {
      if (row.backend != backend) continue;
      all.merge(properties(row));
      if (row.has("short")) in_short.merge(properties(row));
    }
    for (const std::string& property : all) CHECK_MESSAGE(in_short.count(property), (backend + ": " + property));
  }
}
