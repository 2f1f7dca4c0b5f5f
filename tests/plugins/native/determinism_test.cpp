// Deterministic mode: a sample does not depend, bit for bit, on what else is in the batch or on how it was scheduled.
#include <ATen/Parallel.h>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

struct Schedule {
  int64_t blocks = 400, sequences = 32, tokens = 2048;
  bool chunked = true, shared = true;
};

Json section(const TinyModel& model, const std::string& precision, const Schedule& schedule) {
  const at::ScalarType dtype = precision == "float32" ? at::kFloat : at::kHalf;
  const int64_t bytes = hexad::native::KvCache::bytes_per_block(model.config, 4, dtype);
  return {{"model_name", model.path()},
          {"precision", precision},
          {"native_cfg",
           {{"kv_block_size", 4},
            {"kv_cache_gb", (double(schedule.blocks) + 0.5) * double(bytes) / (1024.0 * 1024.0 * 1024.0)},
            {"max_num_seqs", schedule.sequences},
            {"max_num_batched_tokens", schedule.tokens},
            {"enable_chunked_prefill", schedule.chunked},
            {"enable_prefix_sharing", schedule.shared},
            {"deterministic", true}}}};
}

// 17 requests of 6 groups.
std::vector<Ask> seventeen() {
  std::vector<Ask> asks;
  for (uint64_t id = 0; id < 17; ++id) {
    asks.push_back({.id = id,
                    .prompt = random_prompt(id / 3, 4 + 13 * int64_t(id / 3) % 41),
                    .max_new_tokens = 18,
                    .group = id / 3,
                    .seed = 77 + id});
    if (id % 4 == 1) asks.back().top_p = 0.8;
    if (id % 4 == 2) asks.back().temperature = 0.6;
    if (id % 4 == 3) asks.back().temperature = 0;
  }
  return asks;
}

void check_schedules(const std::string& family, const std::string& precision) {
  CAPTURE(precision);
  CAPTURE(family);
  const std::vector<Ask> asks = seventeen();
  const TinyModel model(family);
  Harness batch(section(model, precision, {}));
  const auto expected = batch.run(asks);
  CHECK(batch->preemptions() == 0);
  const auto check = [&](const std::string& what, const std::map<uint64_t, Answer>& answers) {
    CAPTURE(what);
    for (const auto& [id, answer] : answers) {
      CAPTURE(id);
      CHECK(answer == expected.at(id));
    }
  };
  Harness alone(section(model, precision, {}));
  for (const uint64_t id : {0, 5, 6, 11, 16}) check("alone", alone.run({asks[id]}));
  Harness preempted(section(model, precision, {.blocks = 40}));
  check("preempted", preempted.run(asks));
  CHECK(preempted->preemptions() > 0);
  Harness chunks(section(model, precision, {.sequences = 5, .tokens = 7}));
  check("chunks of 7", chunks.run(asks));
  Harness whole(section(model, precision, {.tokens = 7, .chunked = false, .shared = false}));
  check("whole prompts, unshared", whole.run(asks));
  const int threads = at::get_num_threads();
  at::set_num_threads(threads > 1 ? 1 : 2);
  check("another number of threads", batch.run(asks));
  at::set_num_threads(threads);
}

}  // namespace

TEST_CASE("alone, in a batch, preempted, in other chunks, unshared: the same tokens and bits") {
  for (const char* precision : {"float32", "bfloat16"}) {
    for (const std::string& family : families()) check_schedules(family, precision);
  }
  check_schedules("mistral", "float16");  // ATen's operators: slow at this size
}

TEST_CASE("with experts: the same tokens and bits") {
  for (const std::string& family : expert_families()) check_schedules(family, "float32");
}

TEST_CASE("draws are a function of the request's seed") {
  const TinyModel model("llama");
  Harness generator(section(model, "float32", {}));
  const std::vector<int32_t> prompt = random_prompt(1, 9);
  const Ask first{.id = 1, .prompt = prompt, .max_new_tokens = 30, .seed = 5};
  Ask same = first, different = first;
  same.id = 2, different.id = 3, different.seed = 6;
  const auto answers = generator.run({first, same, different});
  CHECK(answers.at(1) == answers.at(2));
  CHECK(answers.at(1).tokens != answers.at(3).tokens);
}
