// What one layout wrote, every other goes on with: the same bytes of weights, the same next step; dtensor included.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr double kTolerance = 5e-5;
const Packing kPacking{2, false, false};

struct Layout {
  int world;
  json sizes;  // of megatron_cfg; null: dtensor
};

const std::vector<Layout>& layouts() {
  const auto sizes = [](int tp, int pp, int cp, bool sequence = false, int chunks = 0) {
    json result = {{"tensor_model_parallel_size", tp},
                   {"pipeline_model_parallel_size", pp},
                   {"context_parallel_size", cp},
                   {"sequence_parallel", sequence}};
    if (chunks > 0) result["virtual_pipeline_model_parallel_size"] = chunks;
    return result;
  };
  static const std::vector<Layout> all = {{1, sizes(1, 1, 1)},
                                          {2, sizes(1, 1, 1)},
                                          {2, sizes(2, 1, 1, true)},
                                          {2, sizes(1, 2, 1)},
                                          {2, sizes(1, 1, 2)},
                                          {4, sizes(2, 2, 1, true)},
                                          {4, sizes(4, 1, 1)},
                                          {4, sizes(1, 2, 1, false, 2)},
                                          {4, sizes(2, 1, 2, true)},
                                          {4, sizes(1, 4, 1)},
                                          {1, nullptr},
                                          {4, nullptr}};
  return all;
}

std::unique_ptr<Instance> make(const std::filesystem::path& model, const json& sizes) {
  auto backend = sizes.is_null() ? std::make_unique<Instance>(policy(model), "dtensor")
                                 : std::make_unique<Instance>(megatron_policy(model, sizes));
  REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
  return backend;
}

void train_step(Instance& backend, int step) {
  const std::vector<Sequence> data = make_sequences(8, step);
  auto batches = backend.batches(data, kPacking);
  backend.train(batches, static_cast<double>(total_tokens(data)), kTemperature);
  backend.step(kLr, kDecay, kMaxNorm);
}

// argument: "INDEX FROM TO": layout INDEX goes on from the checkpoint FROM with step 2 and writes TO; without FROM it
// makes step 1 of the model beside TO.
void go_on(const Rank& rank) {
  start_runtime(rank);
  std::istringstream words(rank.argument);
  size_t index = 0;
  std::string from, to;
  words >> index >> from >> to;
  const std::filesystem::path folder = std::filesystem::path(to).parent_path();
  const auto backend = make(folder / "model", layouts().at(index).sizes);
  if (from == "-") {
    train_step(*backend, 1);
  } else {
    backend->check(backend->load(from, HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER));
    backend->save(to + ".again", HEXAD_CHECKPOINT_MODEL);  // what was read, written out of this layout
    train_step(*backend, 2);
  }
  backend->save(to);
  runtime_test::runtime().stop();
}

std::string argument(size_t index, const std::string& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  std::filesystem::create_directories(to.string() + ".again");
  return std::to_string(index) + " " + from + " " + to.string();
}

const bool registered = add_scenarios({{"go_on", go_on}});

}  // namespace

TEST_CASE("a checkpoint of any layout goes on under any other, dtensor included") {
  const TemporaryDir dir;
  write_model(dir.path() / "model", megatron_model("qwen3"));
  const size_t count = layouts().size();
  Weights want;  // after step 2
  for (size_t writer = 0; writer < count; ++writer) {
    const size_t reader = (writer + 5) % count;  // a permutation: each layout reads another's checkpoint
    INFO("layout " << writer << " wrote, layout " << reader << " goes on");
    const std::filesystem::path first = dir.path() / ("first_" + std::to_string(writer)),
                                second = dir.path() / ("second_" + std::to_string(writer));
    rank_process::run("go_on", layouts()[writer].world, argument(writer, "-", first));
    rank_process::run("go_on", layouts()[reader].world, argument(reader, first.string(), second));
    CHECK(same(read_weights(second.string() + ".again/weights"), read_weights(first / "weights")));
    const Weights got = read_weights(second / "weights");
    if (want.empty()) want = got;
    CHECK(relative_error(got, want) <= kTolerance);
  }
}
