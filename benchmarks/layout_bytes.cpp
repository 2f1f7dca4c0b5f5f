// Bytes that ranks of the megatron backend hold and send, on this host over Gloo, beside their formulas.
//
//   layout_bytes [--quick] [--out FILE]
//
// Built by `ninja layout_bytes`. Held: counted by the allocator, within 5 % of the formulas (held_formula.hpp).
// Sent: counted at the groups, equal to the formulas (sent_formula.hpp). Exits with 1 when one is not.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "benchmarks/layout_bytes/rank_measure.hpp"
#include "benchmarks/layout_bytes/report.hpp"
#include "tests/plugins/backend/scenarios.hpp"

const char* backend_test::plugin_name() { return "megatron"; }

namespace {

using namespace layout_bytes;

std::vector<Form> forms_of(const Layout& layout, bool quick) {
  std::vector<Form> chosen;
  for (const Form& form : forms())
    if (form.name == "bf16, optim" || (layout.every_form && (!quick || layout.name == "DP2"))) chosen.push_back(form);
  return chosen;
}

bool is_quick(const Layout& layout) {
  return layout.name == "DP2" || layout.name == "TP2 PP2" || layout.name == "CP2 EP2";
}

// argument: "FOLDER INDEX QUICK"; the folder holds the model and takes RANK.json.
void run_rank(const rank_process::Rank& rank) {
  std::istringstream argument(rank.argument);
  std::string folder;
  size_t index = 0;
  bool quick = false;
  argument >> folder >> index >> quick;
  const Layout layout = layouts().at(index);
  backend_test::start_runtime(rank);
  count_groups();
  json measured;
  for (const Form& form : forms_of(layout, quick)) measured[form.name] = measure(layout, form, folder);
  backend_test::write_json(folder + "/" + std::to_string(rank.rank) + ".json", measured);
  runtime_test::runtime().stop();
}

std::vector<json> run_layout(size_t index, int64_t layers, bool quick) {
  const Layout layout = layouts()[index];
  const backend_test::TemporaryDir folder;
  backend_test::write_json(folder / "config.json", model_of(layout, layers));
  const std::string argument = fmt::format("{} {} {}", folder.path().string(), index, quick ? 1 : 0);
  const int port = test_support::free_port();
  std::vector<rank_process::Child> ranks;
  for (int rank = 0; rank < layout.world; ++rank)
    ranks.push_back(rank_process::start("layout_bytes", {rank, layout.world, port, argument}, folder.path()));
  rank_process::wait(ranks, std::chrono::seconds(300));
  std::vector<json> measured;
  for (const rank_process::Child& rank : ranks) {
    if (rank.status != 0) {
      fmt::print(stderr, "{}: exit {}\n{}", layout.name, rank.status, rank_process::text_of(rank.log));
      std::exit(1);
    }
    measured.push_back(
        json::parse(rank_process::text_of((folder / std::to_string(measured.size())).string() + ".json")));
  }
  return measured;
}

// The harness of the backends' tests asserts.
void stop_where_assertions_fail(doctest::Context& context) {
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler([](const doctest::AssertData& assertion) {
    if (!assertion.m_failed) return;
    fmt::print(stderr, "{}:{}: {} is {}\n", assertion.m_file, assertion.m_line, assertion.m_expr,
               assertion.m_decomp.c_str());
    std::exit(1);
  });
}

int run(bool quick, const std::string& out) {
  const int64_t layers = quick ? 4 : 12;
  Report report(layers);
  for (size_t i = 0; i < layouts().size(); ++i) {
    const Layout layout = layouts()[i];
    if (!quick || is_quick(layout)) report.add(layout, forms_of(layout, quick), run_layout(i, layers, quick));
  }
  report.print();
  if (!out.empty()) backend_test::write_json(out, report.document());
  return report.agrees() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context;
  stop_where_assertions_fail(context);
  const auto build = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  setenv("HEXAD_BUILD_DIR", build.c_str(), /*overwrite=*/0);
  if (std::getenv("HEXAD_TEST_RANK")) {
    rank_process::run_child({{"layout_bytes", run_rank}});
    return 0;
  }
  bool quick = false;
  std::string out;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      quick = true;
    } else if (argument == "--out" && i + 1 < argc) {
      out = argv[++i];
    } else {
      fmt::print(stderr, "usage: layout_bytes [--quick] [--out FILE]\n");
      return 2;
    }
  }
  return run(quick, out);
}
