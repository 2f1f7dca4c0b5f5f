// Rows of the matrix: their grammar, and what it makes of them.
#include "tests/plugins/layouts/layout_row.hpp"

using layouts_test::json;
using layouts_test::Row;

TEST_CASE("a row says its backend, model, packing and layout") {
  const Row row = Row::parse("megatron mixtral  pad3  tp2 sp cp2 ep2 vpp2 recompute a.b=300 a.c=false d=all");
  CHECK(row.text == "megatron mixtral pad3 tp2 sp cp2 ep2 vpp2 recompute a.b=300 a.c=false d=all");
  CHECK(row.packing.padded);
  CHECK(row.packing.sequences == 3);
  CHECK(row.world() == 4);
  CHECK(row.dimensions() == std::set<std::string>{"tp", "sp", "cp", "ep", "etp", "vpp"});
  const auto policy = row.policy("model");
  CHECK(policy.at("precision") == "float32");
  const json wanted = {{"a", {{"b", 300}, {"c", false}}}, {"activation_checkpointing", true},
                       {"context_parallel_size", 2},      {"d", "all"},
                       {"expert_model_parallel_size", 2}, {"sequence_parallel", true},
                       {"tensor_model_parallel_size", 2}, {"virtual_pipeline_model_parallel_size", 2}};
  for (const auto& [key, value] : wanted.items()) CHECK(policy.at("megatron_cfg").at(key) == value);
  CHECK(Row::parse("megatron mixtral pack1 tp2 sp etp1").dimensions() == std::set<std::string>{"tp", "sp"});
  CHECK(Row::parse("megatron llama pack1 tp2").dimensions() == std::set<std::string>{"tp"});
  const Row marked = Row::parse("megatron llama pack1 tp2 short");
  CHECK(marked.has("short"));
  CHECK(marked.text == "megatron llama pack1 tp2");
  CHECK(Row::parse("dtensor llama pack1 dp4 hsdp2 bf16").policy("model").at("precision") == "bfloat16");
}

TEST_CASE("a row that says anything else is refused") {
  CHECK_THROWS_WITH(Row::parse("fsdp llama pack1"), "\"fsdp\" is no backend of the matrix");
  CHECK_THROWS_WITH(Row::parse("megatron llama packed"), "\"packed\" is not packN or padN");
  CHECK_THROWS_WITH(Row::parse("megatron llama pack1 hsdp2"), "\"hsdp2\" is no word of a layout of megatron");
  CHECK_THROWS_WITH(Row::parse("dtensor llama pack1 pp2"), "\"pp2\" is no word of a layout of dtensor");
}
