// Golden vectors: cases made by running the real systems (tests/golden, or the folder named by HEXAD_GOLDEN_DIR).
// Tests run what they find there. What no test runs is named at the end of `make test` and `make golden`: the cases
// that a test skips, and the cases and files that no test reads (golden_summary.py).
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

// The folders below `models/`, sorted.
std::vector<std::filesystem::path> models();

// Whether the folder has `<file>.json`.
bool has(const std::string& file);

// What a check throws for a case that cannot be run yet. The case is reported as skipped, and does not count as run.
struct Skip {
  std::string why;
};

// Loads `<folder>/<file>.json` ("advantages", "tokenizers/smollm2") and every `<file>_*.json` beside it. Calls
// `check(case)` for every case for which `selects` (default: all) returns true, with doctest's INFO naming the case.
// Counts the cases in the report. Fails if `<file>.json` is missing.
void for_each_case(const std::string& file, const std::function<void(const Json& test_case)>& check,
                   const std::function<bool(const Json& test_case)>& selects = nullptr);

// Records `cases` cases that ran of a file read by other means (models/<name>).
void count(const std::string& file, size_t cases);
// Reports files or folders (models/<name>) of which the running test can run nothing yet, and why.
void skip(const std::vector<std::string>& files, const std::string& why);

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
