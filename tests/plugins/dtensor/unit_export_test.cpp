// Whole weights come from units that are unsharded as training does it: in bf16, of every kept set, whatever an export
// before has left behind, and without a trace in training.
#include "modeling/parallel/placement.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

Weights in_bf16(const Weights& weights) {
  Weights result;
  for (const auto& [name, weight] : weights) result[name] = weight.to(at::kBFloat16);
  return result;
}

// The rows that this rank has of every whole weight are those of its slices.
void check_own_rows(Instance& backend, const Weights& whole, const Rank& rank) {
  for (const auto& [name, rows] : backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_SHARD)) {
    const auto mine = hexad::modeling::chunk_range(whole.at(name).size(0), rank.world, rank.rank);
    CHECK(rows.equal(whole.at(name).narrow(0, mine.begin, mine.size())));
  }
}

// begin, `buckets` times next, end.
void break_off(Instance& backend, int32_t which, int buckets) {
  const hexad_weights_request request{HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes), which,
                                      HEXAD_FORM_FULL, 0, 1};
  backend.check(vtable().weights_begin(backend.self(), backend.call(), &request));
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  while (buckets-- > 0) backend.check(vtable().weights_next(backend.self(), backend.call(), &list));
  vtable().weights_end(backend.self());
}

// With an export that breaks off between the gradients and the step.
void train_step(Instance& backend, int step) {
  auto batches = backend.batches(make_sequences(7, step), {3, false, false});
  backend.train(batches, 10, 1);
  break_off(backend, HEXAD_WEIGHTS_CURRENT, 2);
  CHECK_FALSE(backend.step(3e-2, 0.1, 1.0).skipped);
}

void every_set(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir, other_dir;
  const Weights first = in_bf16(write_tiny_model(dir.path(), "qwen3"));
  std::filesystem::create_directories(other_dir.path() / "weights");
  std::filesystem::copy(dir.path() / "config.json", other_dir.path() / "weights/config.json");
  Weights other;
  for (const auto& [name, weight] : first) other[name] = (weight.to(at::kFloat) * 1.5).contiguous();
  write_weights(other_dir.path() / "weights", other);
  other = in_bf16(other);
  Instance backend(policy(dir.path(), "bfloat16"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  backend.check(backend.load(other_dir.path(), HEXAD_CHECKPOINT_MODEL, HEXAD_WEIGHTS_REFERENCE));
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{2000}, int64_t{1} << 30}) {
    CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, bucket_bytes), first));
    CHECK(same(backend.weights(HEXAD_WEIGHTS_REFERENCE, HEXAD_FORM_FULL, bucket_bytes), other));
  }
  for (const int buckets : {0, 1, 3, 9}) {
    for (const int32_t which : {HEXAD_WEIGHTS_REFERENCE, HEXAD_WEIGHTS_CURRENT}) {
      break_off(backend, which, buckets);
      CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), first));
    }
  }
  // Nothing that was gathered before a step, to the end or not, is taken for what it has made.
  Weights before = first;
  for (int step = 0; step < 3; ++step) {
    train_step(backend, step);
    const Weights now = backend.weights(HEXAD_WEIGHTS_CURRENT);
    CHECK_FALSE(same(now, before));
    check_own_rows(backend, now, rank);
    CHECK(same(backend.weights(HEXAD_WEIGHTS_REFERENCE), other));
    before = now;
  }
  backend.check(backend.load(other_dir.path(), HEXAD_CHECKPOINT_MODEL));
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), other));
  runtime_test::runtime().stop();
}

// Exports between micro-batches and steps change nothing, bit for bit.
void no_trace(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "qwen3");
  Instance plain(policy(dir.path(), "bfloat16")), exporting(policy(dir.path(), "bfloat16"));
  plain.keep(HEXAD_WEIGHTS_REFERENCE), exporting.keep(HEXAD_WEIGHTS_REFERENCE);
  for (int step = 0; step < 2; ++step) {
    for (Instance* backend : {&plain, &exporting}) {
      for (int part = 0; part < 2; ++part) {
        auto batches = backend->batches(make_sequences(5, 2 * step + part), {3, false, false});
        backend->train(batches, 10, 1);
        if (backend == &plain) continue;
        backend->weights(part ? HEXAD_WEIGHTS_CURRENT : HEXAD_WEIGHTS_REFERENCE);
        break_off(*backend, HEXAD_WEIGHTS_REFERENCE, 4);
      }
      CHECK_FALSE(backend->step(1e-2, 0.1, 1.0).skipped);
    }
  }
  CHECK(same(plain.weights(HEXAD_WEIGHTS_CURRENT), exporting.weights(HEXAD_WEIGHTS_CURRENT)));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"every_set", every_set}, {"no_trace", no_trace}});

// Where the first weight lies when it is exported.
const void* address(Instance& backend) {
  const hexad_weights_request request{HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes), HEXAD_WEIGHTS_CURRENT,
                                      HEXAD_FORM_FULL, 0, 1};
  backend.check(vtable().weights_begin(backend.self(), backend.call(), &request));
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  backend.check(vtable().weights_next(backend.self(), backend.call(), &list));
  const void* result = HEXAD_DATA(char, list.slices[0].tensor);
  vtable().weights_end(backend.self());
  return result;
}

}  // namespace

TEST_CASE("whole weights of every kept set, after exports that broke off, steps and loads") {
  for (int world : {1, 3, 4}) rank_process::run("every_set", world);
}

TEST_CASE("an export leaves no trace in training") {
  for (int world : {1, 3}) rank_process::run("no_trace", world);
}

TEST_CASE("one rank hands out the weights that it trains with, without a copy") {
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  for (const std::string precision : {"float32", "bfloat16"}) {
    CAPTURE(precision);
    Instance backend((one_rank(), policy(dir.path(), precision)));
    const void* before = address(backend);
    train_step(backend, 0);
    CHECK(address(backend) == before);
  }
}
