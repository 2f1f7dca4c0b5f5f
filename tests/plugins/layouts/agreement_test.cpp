// Every layout of the matrix beside plain autograd on one rank: `make test-layouts`, a line a layout; `make test` runs
// the short part.
// HEXAD_LAYOUTS=REGEX runs the rows that it finds in "8 ranks: megatron llama pack4 tp2 ...".
#include <fmt/format.h>
#include <sys/resource.h>

#include <iostream>
#include <regex>

#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/layouts/layout_row.hpp"

using namespace backend_test;
using layouts_test::matrix;
using layouts_test::Row;
using rank_process::Rank;

namespace {

constexpr size_t kRowsAtOnce = 8;  // of one start of the processes, which costs seconds; then their lines are printed

std::string label(const Row& row) { return fmt::format("{} ranks: {}", row.world(), row.text); }

// Collective: the largest of the ranks' values.
double largest(double value) {
  hexad_comm* world = nullptr;
  runtime_test::check_ok(runtime_test::runtime().comm_axis("world", &world));
  runtime_test::Tensor<double> tensor({std::isnan(value) ? INFINITY : value});
  if (world) runtime_test::check_ok(runtime_test::runtime().all_reduce(world, &tensor.dl, HEXAD_OP_MAX));
  return tensor.data[0];
}

double resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// argument: {"file": where rank 0 writes a line a row, "rows": indices}. A line has differences with their bounds.
void run_rows(const Rank& rank) {
  start_runtime(rank);
  const json task = json::parse(rank.argument);
  std::ofstream out(rank.rank == 0 ? task.at("file").get<std::string>() : "/dev/null", std::ios::app);
  for (const size_t index : task.at("rows")) {
    const Row& row = matrix().at(index);
    INFO(row.text);
    const auto begin = std::chrono::steady_clock::now();
    const BoundedErrors errors = three_steps(
        row.model(), row.packing, [&](const auto& dir) { return row.policy(dir); }, row.backend, row.has("bf16"));
    const json line = {{"row", index},
                       {"loss", {largest(errors.loss), errors.bound.loss}},
                       {"grad", {largest(errors.grad), errors.bound.grad}},
                       {"norm", {largest(errors.norm), errors.bound.norm}},
                       {"weight", {largest(errors.weight), errors.bound.weight}},
                       {"logprob", {largest(errors.logprob), errors.bound.logprob}},
                       {"mib", largest(resident_mib())},
                       {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()}};
    out << line.dump() << std::endl;
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"run_rows", run_rows}});

struct Totals {
  size_t agree = 0;
  double mib = 0;
};

// JSON writes infinity as null.
double number(const json& value) { return value.is_null() ? INFINITY : value.get<double>(); }

void check_line(const json& line, Totals& totals) {
  const Row& row = matrix().at(line.at("row"));
  bool agrees = true;
  std::string errors;
  for (const char* name : {"loss", "grad", "norm", "weight", "logprob"}) {
    const double error = number(line.at(name)[0]), bound = number(line.at(name)[1]);
    agrees = agrees && error <= bound;
    errors += fmt::format("{} {:.0e}{} ", name, error, error <= bound ? "" : fmt::format(" above {:.0e}", bound));
  }
  const std::string text = fmt::format("{:9}  {:5.1f} s  {} {}", agrees ? "agrees" : "DIFFERS",
                                       number(line.at("seconds")), errors, label(row));
  std::cout << text << std::endl;
  CHECK_MESSAGE(agrees, text);
  totals.agree += agrees;
  totals.mib = std::max(totals.mib, number(line.at("mib")));
}

void run_group(int world, const std::vector<size_t>& rows, Totals& totals) {
  const TemporaryDir dir;
  const std::string file = (dir / "errors").string();
  rank_process::run("run_rows", world, json{{"file", file}, {"rows", rows}}.dump(), {}, std::chrono::seconds(1800));
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) check_line(json::parse(line), totals);
}

void run_matrix(const std::function<bool(const Row&)>& selects) {
  std::map<int, std::vector<size_t>> by_world;
  size_t selected = 0;
  for (size_t i = 0; i < matrix().size(); ++i) {
    if (!selects(matrix()[i]) || !test_device::fits(matrix()[i].world(), label(matrix()[i]))) continue;
    by_world[matrix()[i].world()].push_back(i);
    ++selected;
  }
  Totals totals;
  for (const auto& [world, rows] : by_world)
    for (size_t begin = 0; begin < rows.size(); begin += kRowsAtOnce)
      run_group(world,
                {rows.begin() + static_cast<ptrdiff_t>(begin),
                 rows.begin() + static_cast<ptrdiff_t>(std::min(rows.size(), begin + kRowsAtOnce))},
                totals);
  std::cout << fmt::format("{} of {} layouts agree; the largest rank had {:.0f} MiB resident\n", totals.agree, selected,
                           totals.mib);
  CHECK(selected > 0);
  CHECK(totals.agree == selected);
}

}  // namespace

TEST_CASE("the short part of the matrix agrees with plain autograd on one rank") {
  run_matrix([](const Row& row) { return row.has("short"); });
}

TEST_SUITE("layouts") {
  TEST_CASE("every layout of the matrix agrees with plain autograd on one rank") {
    const char* wanted = std::getenv("HEXAD_LAYOUTS");
    const std::regex pattern(wanted ? wanted : "");
    run_matrix([&](const Row& row) { return std::regex_search(label(row), pattern); });
  }
}
