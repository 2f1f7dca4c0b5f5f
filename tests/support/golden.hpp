// Golden vectors: cases made by running the real systems (tests/golden, or the folder named by HEXAD_GOLDEN_DIR).
// Every case of a file is visited and counted; `ctest -L golden` prints the counts and the files that nothing reads.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace golden {

using Json = nlohmann::ordered_json;

// The folder the vectors are read from.
std::filesystem::path folder();

// Loads `<folder>/<file>.json` ("advantages", "tokenizers/smollm2") and calls `check(case)` for every case for which
// `selects` (default: all) returns true, with doctest's INFO naming the case. Counts the visited cases in the report.
void for_each_case(const std::string& file, const std::function<void(const Json& test_case)>& check,
                   const std::function<bool(const Json& test_case)>& selects = nullptr);

// Records `cases` visited cases of a file read by other means (models/<name>).
void count(const std::string& file, size_t cases);

// First part of a case's name: "kl" of "kl/k1_clamped/0".
std::string prefix(const Json& test_case);

// A tensor {"shape", "dtype", "data"} as flat doubles; the strings "inf", "-inf", "nan", "-0.0" become numbers.
struct Tensor {
  std::vector<int64_t> shape;
  std::string dtype;
  std::vector<double> data;
};
Tensor tensor(const Json& value);
double number(const Json& value);

// |got - want| <= absolute + relative * |want|, elementwise; nan equals nan, inf equals inf. Reports the worst element.
void check_close(const std::vector<double>& got, const std::vector<double>& want, double relative, double absolute);

}  // namespace golden
