// A checkpoint goes on under another mesh and under the megatron backend, and back: the same weights bit for bit, the
// same next step; slices are boxes of the whole weights. More layouts: tests/plugins/layouts/checkpoints_test.cpp.
#include "modeling/parallel/tensor/gather.hpp"
#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr uint32_t kAll = HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER;

struct Layout {
  std::string plugin;
  int world;
  json sizes;
};

const Layout kFrom = {"dtensor", 4, {{"tensor_parallel_size", 2}}};
const std::vector<Layout> kTo = {
    {"dtensor", 3, json::object()},
    {"dtensor", 4, {{"tensor_parallel_size", 4}, {"sequence_parallel", true}}},
    {"dtensor", 4, {{"tensor_parallel_size", 2}, {"dp_replicate_size", 2}}},
    {"megatron", 4, {{"tensor_model_parallel_size", 2}, {"pipeline_model_parallel_size", 2}}},
};

// Experts, cut or shared out.
const Layout kExpertsFrom = {
    "dtensor", 4, {{"tensor_parallel_size", 2}, {"sequence_parallel", true}, {"expert_parallel_size", 2}}};
const std::vector<Layout> kExpertsTo = {
    {"dtensor", 2, {{"tensor_parallel_size", 2}}},
    {"dtensor", 4, {{"expert_parallel_size", 4}}},
    {"dtensor", 4, {{"expert_parallel_size", 2}, {"dp_replicate_size", 2}}},
};
// What a child process gets: the folder, its layout, and the names of what it reads and writes there.
struct Task {
  std::filesystem::path dir;
  std::string plugin, from, to;
  json config;

  explicit Task(const Rank& rank) {
    const json task = json::parse(rank.argument);
    dir = task.at("dir").get<std::string>();
    plugin = task.at("plugin"), from = task.at("from"), to = task.at("to");
    config = policy(dir / "model");
    config.erase("dtensor_cfg");
    config[plugin + "_cfg"] = task.at("sizes");
  }
};

bool run(const char* scenario, const Layout& layout, const TemporaryDir& dir, const std::string& from,
         const std::string& to) {
  const json task = {
      {"dir", dir.path().string()}, {"plugin", layout.plugin}, {"sizes", layout.sizes}, {"from", from}, {"to", to}};
  return rank_process::run(scenario, layout.world, task.dump());
}

void train_step(Instance& backend, int step) {
  auto batches = backend.batches(make_sequences(7, step), {2, false, false});
  backend.train(batches, 30, 1.0);
  // Without weight decay: megatron leaves vectors out of it, as Megatron does, and dtensor does not, as torch.
  CHECK_FALSE(backend.step(3e-3, 0, 0.5).skipped);
}

void check_equal(const std::filesystem::path& got, const std::filesystem::path& want, double weights, double state) {
  CHECK(relative_error(read_weights(got / "weights"), read_weights(want / "weights")) <= weights);
  CHECK(relative_error(read_weights(got / "optimizer"), read_weights(want / "optimizer")) <= state);
}

// One step, what is kept under `to`; another, kept under `to`_next.
void first_steps(const Rank& rank) {
  start_runtime(rank);
  const Task task(rank);
  Instance backend(task.config, task.plugin);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  train_step(backend, 0);
  backend.save(task.dir / task.to);
  train_step(backend, 1);
  backend.save(task.dir / (task.to + "_next"));
  runtime_test::runtime().stop();
}

// From `from`: it is saved again bit for bit, exported whole, and the next step is that of `from`_next.
void goes_on(const Rank& rank) {
  start_runtime(rank);
  const Task task(rank);
  Instance backend(task.config, task.plugin);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  REQUIRE_MESSAGE(backend.load(task.dir / task.from, kAll) == HEXAD_OK, backend.error());
  backend.save(task.dir / task.to);
  check_equal(task.dir / task.to, task.dir / task.from, 0, 0);
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), read_weights(task.dir / task.from / "weights")));
  train_step(backend, 1);
  backend.save(task.dir / (task.to + "_next"));
  check_equal(task.dir / (task.to + "_next"), task.dir / (task.from + "_next"), 1e-5, 5e-5);
  runtime_test::runtime().stop();
}

// Every slice of the layout is that box of the whole weight, and the ranks together have every element.
void slices_are_boxes(const Rank& rank) {
  start_runtime(rank);
  const Task task(rank);
  Instance backend(task.config, task.plugin);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const Weights whole = read_weights(task.dir / "model");
  const Weights slices = backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_SHARD);
  Weights covered;
  for (const auto& [name, weight] : whole) covered[name] = at::zeros_like(weight);
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  backend.check(vtable().weight_layout(backend.self(), backend.call(), &list));
  CHECK(static_cast<size_t>(list.count) == slices.size());
  for (int64_t i = 0; i < list.count; ++i) {
    const hexad_weight_slice& slice = list.slices[i];
    const hexad::modeling::WeightSlice box{{slice.offsets, slice.offsets + slice.ndim},
                                           {slice.shape, slice.shape + slice.ndim}};
    CHECK(slices.at(slice.name).equal(hexad::modeling::box_of(whole.at(slice.name), box)));
    hexad::modeling::box_of(covered.at(slice.name), box).fill_(1);
  }
  hexad_comm* world = nullptr;
  runtime_test::check_ok(runtime_test::runtime().comm_axis("world", &world));
  for (auto& [name, count] : covered) {
    runtime_test::Tensor<float> sum(
        std::vector<float>(count.data_ptr<float>(), count.data_ptr<float>() + count.numel()));
    runtime_test::check_ok(runtime_test::runtime().all_reduce(world, &sum.dl, HEXAD_OP_SUM));
    CHECK(*std::min_element(sum.data.begin(), sum.data.end()) >= 1);
  }
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"first_steps", first_steps}, {"goes_on", goes_on}, {"slices_are_boxes", slices_are_boxes}});

}  // namespace

// From `from` to each of `to`, and from the last of them back.
void go_round(const json& model, const Layout& from, const std::vector<Layout>& to) {
  const TemporaryDir dir;
  write_model(dir / "model", model);
  if (!run("first_steps", from, dir, "", "saved")) return;
  for (size_t i = 0; i < to.size(); ++i) run("goes_on", to[i], dir, "saved", "again" + std::to_string(i));
  run("goes_on", from, dir, "again" + std::to_string(to.size() - 1), "back");
}

TEST_CASE("a checkpoint of a tensor-parallel mesh goes on under other meshes and under megatron, and back") {
  go_round(divisible_model("llama"), kFrom, kTo);
}

TEST_CASE("a checkpoint of experts that are shared out goes on under other meshes, and back") {
  go_round(latent_expert_model(), kExpertsFrom, kExpertsTo);
}

TEST_CASE("slices are boxes of the whole weights and cover them") {
  const Layout four = {"dtensor", 4, {{"tensor_parallel_size", 4}}};
  const auto check = [](const json& model, const Layout& layout) {
    const TemporaryDir dir;
    write_model(dir / "model", model);
    run("slices_are_boxes", layout, dir, "", "");
  };
  check(divisible_model("qwen3"), kFrom);
  check(divisible_model("qwen3"), four);
  check(latent_expert_model(), kExpertsFrom);
  check(expert_model("qwen3_moe"), kExpertsFrom);
}
