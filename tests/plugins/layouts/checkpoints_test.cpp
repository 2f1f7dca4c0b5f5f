// What one layout wrote, every other goes on with: the same bytes of weights, the same next step; across backends.
#include <fmt/format.h>

#include <iostream>

#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/layouts/layout_row.hpp"

using namespace backend_test;
using layouts_test::Row;
using rank_process::Rank;

namespace {

constexpr double kWeights = 5e-5, kState = 5e-5;
constexpr uint32_t kAll = HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER;

// Layouts of one model. Ten at least of each.
const std::map<std::string, std::vector<const char*>>& families() {
  static const std::map<std::string, std::vector<const char*>> all = {
      {"dense",
       {"megatron qwen3 pack2", "megatron qwen3 pack2 dp2", "megatron qwen3 pack2 tp2 sp", "megatron qwen3 pack2 pp2",
        "megatron qwen3 pack2 cp2", "megatron qwen3 pack2 tp2 sp pp2", "megatron qwen3 pack2 tp4",
        "megatron qwen3 pack2 pp2 vpp2 dp2", "megatron qwen3 pack2 tp2 sp cp2", "megatron qwen3 pack2 pp4",
        "dtensor qwen3 pack2", "dtensor qwen3 pack2 dp4 hsdp2", "dtensor qwen3 pack2 tp2 sp cp2"}},
      {"experts",
       {"megatron qwen3_moe pack2", "megatron qwen3_moe pack2 dp2 ep2", "megatron qwen3_moe pack2 tp2 sp",
        "megatron qwen3_moe pack2 pp2 vpp2", "megatron qwen3_moe pack2 cp2 ep2", "megatron qwen3_moe pack2 dp4 ep4",
        "megatron qwen3_moe pack2 tp2 sp dp2 ep2 etp1", "megatron qwen3_moe pack2 dp4 ep2 etp2",
        "megatron qwen3_moe pack2 pp2 dp2 ep2", "megatron qwen3_moe pack2 tp2 sp pp2", "dtensor qwen3_moe pack2",
        "dtensor qwen3_moe pack2 cp2 dp2", "dtensor qwen3_moe pack2 tp2", "dtensor qwen3_moe pack2 dp4 ep2",
        "dtensor qwen3_moe pack2 tp2 sp dp2 ep4"}},
      {"latent attention",
       {"megatron latent pack2", "megatron latent pack2 dp2", "megatron latent pack2 tp2 sp",
        "megatron latent pack2 pp2", "megatron latent pack2 cp2", "megatron latent pack2 tp2 sp pp2",
        "megatron latent pack2 tp4", "megatron latent pack2 pp2 vpp2 dp2", "megatron latent pack2 tp2 sp cp2",
        "dtensor latent pack2", "dtensor latent pack2 dp2", "dtensor latent pack2 dp4 hsdp2"}},
  };
  return all;
}

const std::vector<const char*>& layouts_of(const std::string& family) { return families().at(family); }

// Of them, those that have enough devices.
const std::vector<size_t>& runnable(const std::string& family) {
  static std::map<std::string, std::vector<size_t>> found;
  const auto [place, first] = found.try_emplace(family);
  const std::vector<const char*>& all = layouts_of(family);
  for (size_t i = 0; first && i < all.size(); ++i)
    if (test_device::fits(Row::parse(all[i]).world(), std::string("checkpoints of ") + all[i]))
      place->second.push_back(i);
  return place->second;
}

// A child process makes one pass over the layouts with its number of ranks, of all tasks.
//   write: step 1 of the model from the start, kept under `dir`/W; step 2 of the same, kept under `dir`/W_next.
//   read: for every pair (W, R) of `pairs` with R's number of ranks: R loads W, keeps what it read under W_R, and step
//   2 under W_R_next.
struct Task {
  std::filesystem::path dir;
  std::string family;
  std::vector<std::pair<size_t, size_t>> pairs;

  json document() const { return {{"dir", dir.string()}, {"family", family}, {"pairs", pairs}}; }
  Row row(size_t index) const { return Row::parse(layouts_of(family).at(index)); }
  std::filesystem::path written(size_t w) const { return dir / std::to_string(w); }
  std::filesystem::path read(size_t w, size_t r) const { return dir / fmt::format("{}_{}", w, r); }
};

std::string text_of(const std::vector<Task>& tasks) {
  json text = json::array();
  for (const Task& task : tasks) text.push_back(task.document());
  return text.dump();
}

std::vector<Task> parse_tasks(const std::string& text) {
  std::vector<Task> tasks;
  for (const json& task : json::parse(text))
    tasks.push_back({task.at("dir").get<std::string>(), task.at("family"), task.at("pairs")});
  return tasks;
}

std::filesystem::path next(const std::filesystem::path& folder) { return folder.string() + "_next"; }

std::unique_ptr<Instance> make(const Task& task, const Row& row) {
  auto backend = std::make_unique<Instance>(row.policy(task.dir / "model"), row.backend);
  REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
  return backend;
}

void train_step(Instance& backend, const Row& row, int step) {
  const std::vector<Sequence> data = make_sequences(8, step);
  auto batches = backend.batches(data, row.packing);
  backend.train(batches, static_cast<double>(total_tokens(data)), kTemperature);
  // Without weight decay: megatron leaves vectors out of it, as Megatron does, and dtensor does not, as torch.
  CHECK_FALSE(backend.step(kLr, 0, kMaxNorm).skipped);
}

void save(Instance& backend, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  backend.save(folder, kAll);
}

void write_checkpoints(const Task& task, int world) {
  for (const size_t w : runnable(task.family)) {
    const Row row = task.row(w);
    if (row.world() != world) continue;
    const auto backend = make(task, row);
    CHECK(same(backend->weights(HEXAD_WEIGHTS_CURRENT), read_weights(task.dir / "model")));
    train_step(*backend, row, 1);
    save(*backend, task.written(w));
    train_step(*backend, row, 2);
    save(*backend, next(task.written(w)));
  }
}

void read_checkpoints(const Task& task, int world) {
  for (const auto& [w, r] : task.pairs) {
    const Row row = task.row(r);
    if (row.world() != world) continue;
    INFO(task.row(w).text << " wrote, " << row.text << " reads");
    const auto backend = make(task, row);
    REQUIRE_MESSAGE(backend->load(task.written(w), kAll) == HEXAD_OK, backend->error());
    save(*backend, task.read(w, r));
    CHECK(same(backend->weights(HEXAD_WEIGHTS_CURRENT), read_weights(task.written(w) / "weights")));
    train_step(*backend, row, 2);
    save(*backend, next(task.read(w, r)));
  }
}

void (*const kPasses[])(const Task&, int) = {write_checkpoints, read_checkpoints};

// argument: the number of the pass, then the tasks.
void checkpoints_pass(const Rank& rank) {
  start_runtime(rank);
  for (const Task& task : parse_tasks(rank.argument.substr(1))) kPasses[rank.argument[0] - '0'](task, rank.world);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"checkpoints_pass", checkpoints_pass}});

double error_of(const std::filesystem::path& got, const std::filesystem::path& want, const char* part) {
  return relative_error(read_weights(got / part), read_weights(want / part));
}

void check_pair(const Task& task, size_t w, size_t r) {
  const std::filesystem::path written = task.written(w), read = task.read(w, r);
  const bool bytes = same(read_weights(read / "weights"), read_weights(written / "weights")) &&
                     same(read_weights(read / "optimizer"), read_weights(written / "optimizer"));
  const double weights = error_of(next(read), next(written), "weights"),
               state = error_of(next(read), next(written), "optimizer");
  const bool goes_on = bytes && weights <= kWeights && state <= kState;
  const std::string text =
      fmt::format("{:9}  {}, next step: weights {:.0e} optimizer {:.0e}  {} -> {}", goes_on ? "goes on" : "DIFFERS",
                  bytes ? "same bytes" : "OTHER BYTES", weights, state, task.row(w).text, task.row(r).text);
  CHECK_MESSAGE(goes_on, text);
  if (task.pairs.size() > layouts_of(task.family).size()) std::cout << text << std::endl;
  std::filesystem::remove_all(read);
  std::filesystem::remove_all(next(read));
}

using Pairs = std::vector<std::pair<size_t, size_t>>;

void run_pairs(const std::map<std::string, Pairs>& pairs_of_families) {
  const TemporaryDir dir;
  std::vector<Task> tasks;
  std::set<int> worlds;
  for (const auto& [family, pairs] : pairs_of_families) {
    tasks.push_back({dir / family, family, pairs});
    write_model(tasks.back().dir / "model", tasks.back().row(0).model());
    for (const size_t row : runnable(family)) worlds.insert(tasks.back().row(row).world());
  }
  for (const char* const pass : {"0", "1"})
    for (const int world : worlds)
      rank_process::run("checkpoints_pass", world, pass + text_of(tasks), {}, std::chrono::seconds(1800));
  for (const Task& task : tasks)
    for (const auto& [w, r] : task.pairs) check_pair(task, w, r);
}

}  // namespace

// A permutation: each layout reads another's checkpoint.
TEST_CASE("a checkpoint of any layout goes on under another, across backends") {
  std::map<std::string, Pairs> all;
  for (const auto& [family, layouts] : families()) {
    CHECK(layouts.size() >= 10);
    const std::vector<size_t>& can = runnable(family);
    for (size_t i = 0; i < can.size(); ++i) all[family].emplace_back(can[i], can[(i + 5) % can.size()]);
  }
  run_pairs(all);
}

void run_all_pairs(const std::string& family) {
  const std::vector<size_t>& can = runnable(family);
  Pairs pairs;
  for (const size_t w : can)
    for (const size_t r : can) pairs.emplace_back(w, r);
  run_pairs({{family, pairs}});
  std::cout << fmt::format("{}: what {} layouts wrote went on under each of them\n", family, can.size());
}

TEST_SUITE("layouts") {
  TEST_CASE("a checkpoint of any layout of a dense model goes on under every other") { run_all_pairs("dense"); }
  TEST_CASE("a checkpoint of any layout of experts goes on under every other") { run_all_pairs("experts"); }
  TEST_CASE("a checkpoint of any layout of latent attention goes on under every other") {
    run_all_pairs("latent attention");
  }
}
