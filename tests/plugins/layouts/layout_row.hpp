// A line of matrix.txt: a backend, a family, a packing and a layout.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/plugins/backend/harness.hpp"

namespace layouts_test {

using backend_test::json;
using backend_test::Packing;

struct Row {
  std::string text;  // as it is written but for "short", words separated by one space
  std::string backend, family;
  Packing packing;
  std::map<std::string, int> sizes;  // of the dimensions that are written
  std::set<std::string> words;       // sp, recompute, bf16, short
  json settings = json::object();    // key=value

  // Throws std::runtime_error that quotes what is wrong.
  static Row parse(const std::string& line);

  int size(const std::string& dimension) const { return sizes.count(dimension) ? sizes.at(dimension) : 1; }
  bool has(const std::string& word) const { return words.count(word) != 0; }
  bool has_experts() const;
  int world() const { return size("tp") * size("cp") * size("pp") * size("dp"); }
  int expert_tensor() const;
  // The dimensions that this layout divides anything by: "tp", "sp", "ep" ...
  std::set<std::string> dimensions() const;

  json model() const;
  json policy(const std::filesystem::path& model) const;

 private:
  void read_word(const std::string& word);
};

// Every row of matrix.txt, in its order.
const std::vector<Row>& matrix();

}  // namespace layouts_test
