// What a step does and leaves alone: kept weights, gradients that are not finite, discarded ones, idle ranks.
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

// An instance with its model, and data in micro-batches of two sequences.
struct Run {
  const FixedOrder order;
  const Rank& rank;
  TemporaryDir dir;
  std::optional<Instance> backend;
  std::vector<Sequence> data = make_sequences(7, 3);
  std::deque<Batch> batches;

  explicit Run(const Rank& here, const std::string& precision = "float32", const std::string& family = "qwen3")
      : rank(here) {
    start_runtime(rank);
    write_tiny_model(dir.path(), family);
    backend.emplace(policy(dir.path(), precision));
    REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
    batches = backend->batches(data, {2, false, false});
  }
  void train(double factor = 1) { backend->train(batches, 30, 0.9, factor); }
  hexad_step_stats step(uint32_t flags = 0) { return backend->step(1e-2, 0.1, 1.0, flags); }
  Weights weights() { return backend->weights(HEXAD_WEIGHTS_CURRENT); }
};

std::vector<at::Tensor> logprobs(Run& run, int32_t which) { return run.backend->logprobs(run.batches, which, 0.9); }

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return x.equal(y); });
}

void kept_weights(const Rank& rank) {
  for (const char* precision : {"float32", "bfloat16"}) {
    Run run(rank, precision);
    const auto first = logprobs(run, HEXAD_WEIGHTS_CURRENT);
    const Weights first_weights = run.weights();
    run.backend->keep(HEXAD_WEIGHTS_REFERENCE);
    run.train();
    CHECK_FALSE(run.step().skipped);
    const auto second = logprobs(run, HEXAD_WEIGHTS_CURRENT);
    run.backend->keep(HEXAD_WEIGHTS_SNAPSHOT);
    run.train();
    CHECK_FALSE(run.step().skipped);
    CHECK(equal(logprobs(run, HEXAD_WEIGHTS_REFERENCE), first));
    CHECK(equal(logprobs(run, HEXAD_WEIGHTS_SNAPSHOT), second));
    CHECK_FALSE(equal(first, second));
    CHECK_FALSE(equal(logprobs(run, HEXAD_WEIGHTS_CURRENT), second));
    CHECK(same(run.backend->weights(HEXAD_WEIGHTS_REFERENCE), first_weights));
  }
  runtime_test::runtime().stop();
}

// One rank's gradient is not a number: no rank moves, and the next step is the one that would have been made.
void not_finite(const Rank& rank) {
  Run run(rank), undisturbed(rank);
  const Weights before = run.weights();
  run.train(rank.rank == rank.world - 1 ? NAN : 1);
  const hexad_step_stats stats = run.step();
  CHECK(stats.skipped == 1);
  CHECK_FALSE(std::isfinite(stats.grad_norm));
  CHECK(same(run.weights(), before));
  run.train();
  CHECK(run.step().skipped == 0);
  undisturbed.train();
  CHECK_FALSE(undisturbed.step().skipped);
  CHECK(same(run.weights(), undisturbed.weights()));
  runtime_test::runtime().stop();
}

// The loss fails everywhere in the middle of a call: nothing of it is left in the next one.
void failed_loss(const Rank& rank) {
  Run run(rank), undisturbed(rank);
  double loss = 0;
  CHECK(run.backend->try_train(run.batches, 30, 0.9, INFINITY, loss) == HEXAD_INTERNAL);
  CHECK(run.backend->error() == "the loss failed");
  CHECK_FALSE(logprobs(run, HEXAD_WEIGHTS_CURRENT).empty());
  for (int step = 0; step < 2; ++step) {
    run.train(), run.step();
    undisturbed.train(), undisturbed.step();
  }
  CHECK(same(run.weights(), undisturbed.weights()));
  runtime_test::runtime().stop();
}

void discarded(const Rank& rank) {
  Run run(rank), undisturbed(rank);
  const Weights before = run.weights();
  run.train();
  const hexad_step_stats stats = run.step(HEXAD_STEP_DISCARD);
  CHECK(stats.skipped == 0);
  CHECK(same(run.weights(), before));
  for (const auto& [name, grad] : run.backend->weights(HEXAD_WEIGHTS_GRADIENTS))
    CHECK(grad.count_nonzero().item<int64_t>() == 0);
  run.train(), run.step();
  undisturbed.train(), undisturbed.step();
  CHECK(same(run.weights(), undisturbed.weights()));
  runtime_test::runtime().stop();
}

// One sequence: every rank but the first has a dummy, or a batch without tokens.
void idle_ranks(const Rank& rank) {
  Run run(rank);
  Reference reference(run.dir.path(), read_weights(run.dir.path()));
  const std::vector<Sequence> one = {run.data[1]};
  reference.train(one, 30, 0.9);
  for (const bool empty : {false, true}) {
    run.batches = run.backend->batches(one, {2, false, false});
    if (empty && rank.rank > 0) {
      run.batches.clear();
      run.batches.emplace_back(std::vector<Sequence>{}, Packing{});
    }
    run.train();
    CHECK(relative_error(run.backend->weights(HEXAD_WEIGHTS_GRADIENTS), reference.grads) <= 1e-5);
    CHECK_FALSE(logprobs(run, HEXAD_WEIGHTS_CURRENT).empty());
    run.step(HEXAD_STEP_DISCARD);
  }
  runtime_test::runtime().stop();
}

// Two train calls before one step add up.
void accumulates(const Rank& rank) {
  Run run(rank);
  Reference reference(run.dir.path(), read_weights(run.dir.path()));
  reference.train(run.data, 30, 0.9);
  reference.train(run.data, 30, 0.9);
  run.train(), run.train();
  CHECK(relative_error(run.backend->weights(HEXAD_WEIGHTS_GRADIENTS), reference.grads) <= 1e-5);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"kept_weights", kept_weights},
                                       {"not_finite", not_finite},
                                       {"failed_loss", failed_loss},
                                       {"discarded", discarded},
                                       {"idle_ranks", idle_ranks},
                                       {"accumulates", accumulates}});

}  // namespace

TEST_CASE("log-probs of reference and snapshot stay those of the weights that were kept") {
  for (int world : {1, 2}) rank_process::run("kept_weights", world);
}
TEST_CASE("a gradient that is not finite on one rank skips the step on all, without a trace") {
  for (int world : {1, 2}) rank_process::run("not_finite", world);
}
TEST_CASE("a loss that fails ends the call, without a trace in the next") {
  for (int world : {1, 2}) rank_process::run("failed_loss", world);
}
TEST_CASE("a discarded gradient leaves no trace") {
  for (int world : {1, 2}) rank_process::run("discarded", world);
}
TEST_CASE("ranks with a dummy or an empty batch take part") { rank_process::run("idle_ranks", 3); }
TEST_CASE("gradients of several train calls add up") {
  for (int world : {1, 2}) rank_process::run("accumulates", world);
}

TEST_CASE("log-probs follow the convention: fp32, 0 at each sequence's first token, the reference's values") {
  Run run(one_rank());
  Reference reference(run.dir.path(), read_weights(run.dir.path()));
  const auto got = logprobs(run, HEXAD_WEIGHTS_CURRENT);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> want;
  for (const Sequence& sequence : run.data) want.push_back(reference.outputs(reference.weights, sequence, 0.9).first);
  CHECK(relative_error(at::cat(got), at::cat(want)) <= 1e-5);
  size_t i = 0;
  for (const at::Tensor& batch : got)
    for (int64_t at = 0; at < batch.size(0); at += want[i++].size(0)) CHECK(batch[at].item<float>() == 0);
}

TEST_CASE("sequences that begin alike have log-probs, entropy and gradients of their own") {
  Run run(one_rank());
  Reference reference(run.dir.path(), read_weights(run.dir.path()));
  std::vector<Sequence> data;
  for (const Sequence& sequence : make_sequences(6, 8)) {
    for (const size_t own :
         {size_t{0}, size_t{3}, size_t{1}}) {  // an end of its own after the first one's tokens, or a part of them
      Sequence sample = data.empty() ? sequence : data.front();
      sample.ids.insert(sample.ids.end(), sequence.ids.begin(),
                        sequence.ids.begin() + std::min(own, sequence.ids.size()));
      if (own == 1) sample.ids.resize(std::max<size_t>(1, sample.ids.size() / 2));
      sample.weight.resize(sample.ids.size(), 0.25f + 0.5f * static_cast<float>(own));
      data.push_back(sample);
    }
  }
  auto batches = run.backend->batches(data, {data.size(), false, false});
  const at::Tensor got = at::cat(run.backend->logprobs(batches, HEXAD_WEIGHTS_CURRENT, 0.9));
  const at::Tensor entropy = at::cat(run.backend->logprobs(batches, HEXAD_WEIGHTS_CURRENT, 0.9, "entropy", 0));
  std::vector<at::Tensor> want, want_entropy;
  {
    const at::NoGradGuard no_grad;
    for (const Sequence& sequence : data) {
      const auto [logprobs, entropy] = reference.outputs(reference.weights, sequence, 0.9);
      want.push_back(logprobs), want_entropy.push_back(entropy);
    }
  }
  CHECK(relative_error(got, at::cat(want)) <= 1e-5);
  CHECK(relative_error(entropy, at::cat(want_entropy)) <= 1e-5);
  const double loss = run.backend->train(batches, 30, 0.9);
  CHECK(loss == doctest::Approx(reference.train(data, 30, 0.9)).epsilon(1e-5));
  CHECK(relative_error(run.backend->weights(HEXAD_WEIGHTS_GRADIENTS), reference.grads) <= 1e-5);
}

TEST_CASE("filters change log-probs and entropy, and leave the unfiltered log-probs") {
  Run run(one_rank());
  const auto get = [&](const char* output, int64_t top_k) {
    return at::cat(run.backend->logprobs(run.batches, HEXAD_WEIGHTS_CURRENT, 0.9, output, top_k));
  };
  const at::Tensor free = get("logprobs", 0), filtered = get("logprobs", 30);
  CHECK(get("logprobs_unfiltered", 30).allclose(free, 0, 1e-5));
  CHECK(filtered.isinf().any().item<bool>());
  CHECK(filtered.ge(free).logical_or(filtered.isinf()).all().item<bool>());
  CHECK(get("entropy", 30).le(get("entropy", 0) + 1e-5).all().item<bool>());
}

TEST_CASE("a sequence without tokens changes nothing, packed or padded") {
  Run run(one_rank());
  std::vector<Sequence> with_empty = run.data;
  with_empty.insert(with_empty.begin() + 3, Sequence{});
  for (const bool padded : {false, true}) {
    const Packing packing{8, padded, false};
    auto plain = run.backend->batches(run.data, packing), odd = run.backend->batches(with_empty, packing);
    run.backend->train(plain, 30, 0.9);
    const Weights want = run.backend->weights(HEXAD_WEIGHTS_GRADIENTS);
    run.step(HEXAD_STEP_DISCARD);
    run.backend->train(odd, 30, 0.9);
    CHECK(relative_error(run.backend->weights(HEXAD_WEIGHTS_GRADIENTS), want) <= 1e-5);
    run.step(HEXAD_STEP_DISCARD);
  }
}

TEST_CASE("calls out of order are refused") {
  Run run(one_rank());
  hexad_step_args args{HEXAD_STRUCT_SIZE(hexad_step_args, max_grad_norm), 0, 0.1, 0, 0};
  hexad_step_stats stats{HEXAD_STRUCT_SIZE(hexad_step_stats, grad_norm), 0, 0};
  CHECK(vtable().step(run.backend->self(), run.backend->call(), &args, &stats) == HEXAD_FAILED_PRECONDITION);
  CHECK(run.backend->error() == "step without gradients: call train first");
  CHECK(vtable().keep(run.backend->self(), run.backend->call(), HEXAD_WEIGHTS_CURRENT) == HEXAD_INVALID_ARGUMENT);
  CHECK(run.backend->error() == "weights 0 cannot be kept: wanted reference (1) or snapshot (2)");
  hexad_weights_request request{HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes), HEXAD_WEIGHTS_REFERENCE,
                                HEXAD_FORM_FULL, 0, 1};
  CHECK(vtable().weights_begin(run.backend->self(), run.backend->call(), &request) == HEXAD_FAILED_PRECONDITION);
  CHECK(run.backend->error() == "no reference weights are kept: call keep or load first");
}
