// What is said where memory is short: the keys that help, refusals, notices, and the end of a run.
#include "app/plan/advice.hpp"

#include "tests/app/plan/planned.hpp"
#include "tests/support/toy/train.hpp"

using namespace plan_test;
using hexad::config::Problem;

namespace {

std::vector<Problem> said(const Loaded& loaded, int64_t room) {
  return check_memory(loaded, {false, room, "this host has " + bytes_text(room)});
}

}  // namespace

TEST_CASE("the keys that save most come first; what a rule refuses or saves nothing is left out") {
  const Loaded loaded = planned(backend_facts(), generator_facts());
  // Half a micro-batch is half of 128 KiB of activations, and half a sequence is as much.
  CHECK(best_savings(loaded, 100 * kKiB) == std::vector<Saving>{{"policy.train_micro_batch_size", "2", 64 * kKiB},
                                                                {"policy.max_total_sequence_length", "16", 64 * kKiB},
                                                                {"policy.theirs.offload", "true", 8 * kKiB}});
  CHECK(best_savings(loaded, 100 * kKiB, 1).size() == 1);
  CHECK(text_of(best_savings(loaded, 100 * kKiB, 1)) == "policy.train_micro_batch_size=2 (saves 64.0 KiB)");
  CHECK(best_savings(planned(nullptr, nullptr)).empty());
}

TEST_CASE("states that exceed the room are an error, an estimate that does is a notice") {
  const Loaded loaded = planned(backend_facts(), generator_facts());
  CHECK(said(loaded, 1 << 30).empty());
  CHECK(check_memory(loaded, {false, {}, "nobody knows"}).empty());
  const std::vector<Problem> notice = said(loaded, 100 * kKiB);
  REQUIRE(notice.size() == 1);
  CHECK_FALSE(notice[0].is_error());
  CHECK(notice[0].key == "policy.model_name");
  CHECK(notice[0].message ==
        "a rank may need 146.0 KiB in training (gradients 4.0 KiB, optimizer 8.0 KiB, parameters 4.0 KiB, activations "
        "128.0 KiB, generator_weights 2.0 KiB), and this host has 100.0 KiB; what helps most: "
        "policy.train_micro_batch_size=2 (saves 64.0 KiB), policy.max_total_sequence_length=16 (saves 64.0 KiB), "
        "policy.theirs.offload=true (saves 8.0 KiB) (`hexad plan` has it in parts)");
  const std::vector<Problem> error = said(loaded, 15 * kKiB);
  REQUIRE(error.size() == 1);
  CHECK(error[0].is_error());
  config_test::check_says(error[0].message,
                          "a rank that trains would hold 16.0 KiB before it computes anything (gradients 4.0 KiB, "
                          "optimizer 8.0 KiB, parameters 4.0 KiB), and this host has 15.0 KiB; what helps most: "
                          "policy.theirs.offload=true (saves 8.0 KiB) (`hexad plan`");
  // CPUs that no one has named may not be where the run is meant for.
  const std::vector<Problem> elsewhere = check_memory(loaded, {false, 15 * kKiB, "this host has little", false});
  REQUIRE(elsewhere.size() == 1);
  CHECK_FALSE(elsewhere[0].is_error());
  Json bare = backend_facts();
  bare.erase("memory_keys"), bare.erase("training_bytes"), bare.erase("logprob_bytes");
  config_test::check_says(said(planned(bare, nullptr), 15 * kKiB)[0].message,
                          "no key that is known here helps: take a smaller model or more ranks");
}

TEST_CASE("the table and the JSON of a plan") {
  const Loaded loaded = planned(backend_facts(), nullptr, {"~grpo", "++sft.max_num_steps=1"});
  const MemoryPlan plan = memory_plan(loaded);
  const Room room{false, 100 * kKiB, "this host has 100.0 KiB"};
  const std::vector<Saving> savings = best_savings(loaded, room.bytes, 1);
  CHECK(table(plan, room, savings) ==
        "            gradients                4.0 KiB\n"
        "            optimizer                8.0 KiB\n"
        "            parameters               4.0 KiB\n"
        "            activations            128.0 KiB\n"
        "training    sum                    144.0 KiB   44.0 KiB too many\n"
        "\n"
        "most: 144.0 KiB in training; this host has 100.0 KiB\n"
        "saves   64.0 KiB: policy.train_micro_batch_size=2\n");
  CHECK(fits(plan, room) == false);
  CHECK(fits(plan, {false, 1 << 20, ""}) == true);
  CHECK_FALSE(fits(plan, {false, {}, ""}));
  const Json json = json_of(plan, room, savings);
  CHECK(json["held"] == 16 * kKiB);
  CHECK(json["phases"][0]["parts"]["activations"] == 128 * kKiB);
  CHECK(json["worst"] == "training");
  CHECK(json["fits"] == false);
  CHECK(json["savings"][0] == Json{{"key", "policy.train_micro_batch_size"}, {"value", "2"}, {"bytes", 64 * kKiB}});

  const MemoryPlan unknown = memory_plan(planned(nullptr, nullptr, {"~grpo", "++sft.max_num_steps=1"}));
  CHECK_FALSE(fits(unknown, {false, 1 << 30, ""}));
  config_test::check_says(table(unknown, room, {}), "nothing is known of what this configuration holds\n");
  config_test::check_says(table(unknown, room, {}), "sum, at least");
  CHECK(json_of(unknown, room, {})["held"].is_null());
}

TEST_CASE("errors of runs that ran out of memory are told from others") {
  for (const char* text : {"rank 0: CUDA out of memory. Tried to allocate 2.00 GiB", "train: std::bad_alloc",
                           "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory",
                           "RESOURCE_EXHAUSTED: the KV cache needs 3 GiB"})
    CHECK_MESSAGE(is_out_of_memory(text), text);
  for (const char* text : {"rank 1 did not answer", "with less in a pass if it was out of memory"})
    CHECK_FALSE_MESSAGE(is_out_of_memory(text), text);
  const Loaded loaded = planned(backend_facts(), generator_facts());
  const Room room{false, 100 * kKiB, ""};
  CHECK(with_advice("rank 1 did not answer", loaded.root, room) == "rank 1 did not answer");
  CHECK(with_advice("rank 0: out of memory", loaded.root, room) ==
        "rank 0: out of memory\nout of memory: what helps most: policy.train_micro_batch_size=2 (saves 64.0 KiB), "
        "policy.max_total_sequence_length=16 (saves 64.0 KiB), policy.theirs.offload=true (saves 8.0 KiB)");
}

TEST_CASE("a run whose worker is out of memory ends with what helps") {
  const toy::TempDir dir;
  const toy::Ended run = toy::run(toy::train(dir, {"+policy.plugin_config.fault=train@2:memory"}));
  INFO(run.err);
  CHECK(run.code != 0);
  CHECK(plugin_test::contains(run.err, "CUDA out of memory. Tried to allocate 2 GiB"));
  // The toy states no bytes.
  CHECK(plugin_test::contains(run.err, "\n  out of memory: no key that is known here helps: take a smaller model"));
}

TEST_CASE("hexad plan prints a plan, and its exit code says whether it fits") {
  const std::string config = (toy::source_dir() / "configs/quickstart.yaml").string();
  const auto plan = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", config});
    return toy::run(arguments);
  };
  const toy::Ended fits = plan({"cluster.device=cpu", "--memory", "4GiB"});
  CHECK_MESSAGE(fits.code == 0, fits.out << fits.err);
  CHECK(plugin_test::contains(fits.out, "a rank has 4.0 GiB (--memory)"));
  const toy::Ended small = plan({"cluster.device=cpu", "--memory", "1MB", "--json"});
  CHECK(small.code == 1);
  CHECK(Json::parse(small.out)["fits"] == false);
  const toy::Ended wrong = plan({"--memory", "much"});
  CHECK(wrong.code == 2);
  CHECK(plugin_test::contains(wrong.err, "--memory: got 'much', wanted a size such as 80GiB"));
  CHECK(plan({"grpo.seed=abc"}).code == 2);
}
