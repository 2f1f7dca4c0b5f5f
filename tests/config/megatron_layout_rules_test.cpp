// Rules about the grid, tensor, pipeline and context parallelism: messages, and a valid neighbour of each.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

namespace {

const std::string kTp = "tensor_model_parallel_size=", kPp = "pipeline_model_parallel_size=",
                  kCp = "context_parallel_size=", kVpp = "virtual_pipeline_model_parallel_size=",
                  kPacking = "/policy.sequence_packing.enabled=true",
                  kLayout = "pipeline_model_parallel_layout=", kSp = "sequence_parallel=true";

std::string lengths(int multiple) { return fmt::format("/policy.make_sequence_length_divisible_by={}", multiple); }

}  // namespace

TEST_CASE("rules 1 to 3: the grid") {
  check_rules(
      kDense,
      {{{kTp + "2", kPp + "8"},
        "pipeline_model_parallel_size: tensor_model_parallel_size 2 x pipeline_model_parallel_size 8 x "
        "context_parallel_size 1 = 16 does not divide the 8 ranks (cluster.num_nodes 1 x gpus_per_node 8); "
        "nearest: 4",
        {kTp + "2", kPp + "4"}},
       {{"/cluster.gpus_per_node=6", "/grpo.num_prompts_per_step=24", "/policy.train_global_batch_size=384", kTp + "4"},
        "tensor_model_parallel_size 4 x pipeline_model_parallel_size 1 x context_parallel_size 1 = 4 does not "
        "divide the 6 ranks (cluster.num_nodes 1 x gpus_per_node 6); nearest: 3 or 6",
        {"/cluster.gpus_per_node=6", "/grpo.num_prompts_per_step=24", "/policy.train_global_batch_size=384",
         "/policy.train_micro_batch_size=1", "/policy.logprob_batch_size=1", kTp + "2"}},
       {{"rank_order=tp-dp-pp"},
        "rank_order: got 'tp-dp-pp', wanted tp, cp, ep, dp and pp once each, joined by '-': the default is "
        "tp-cp-ep-dp-pp, and tp-cp-pp-ep-dp is Megatron's other order",
        {"rank_order=tp-cp-pp-ep-dp"}}});
  check_rules(
      kExperts,
      {{{"expert_tensor_parallel_size=2", "expert_model_parallel_size=3"},
        "expert_model_parallel_size: expert_tensor_parallel_size 2 x expert_model_parallel_size 3 x "
        "pipeline_model_parallel_size 1 = 6 does not divide the 8 ranks (cluster.num_nodes 1 x gpus_per_node "
        "8); nearest: 2 or 4",
        {"expert_tensor_parallel_size=2", "expert_model_parallel_size=4"}},
       {{"rank_order=tp-cp-pp-ep-dp", kPp + "2", kTp + "2", kSp, "expert_model_parallel_size=4"},
        "rank_order: with tp-cp-pp-ep-dp the dense part and the experts need the same data-parallel size, got 2 "
        "(tensor x context 2 x 1) and 1 (expert tensor x expert 1 x 4); nearest: tp-cp-ep-dp-pp",
        {kPp + "2", kTp + "2", kSp, "expert_model_parallel_size=4"}},
       {{"rank_order=tp-cp-pp-ep-dp", kPp + "2", kTp + "2", kSp, "expert_model_parallel_size=2"},
        "rank_order: with tp-cp-pp-ep-dp the stages of the dense part lie 2 ranks apart and those of the experts "
        "1, wanted the same pipelines for both; nearest: tp-cp-ep-dp-pp",
        {"rank_order=tp-cp-pp-ep-dp", kPp + "2", kTp + "2", kSp, "expert_tensor_parallel_size=2"}}});
}

TEST_CASE("rules 4 to 6: tensor and sequence parallelism") {
  check_rules(
      kDense,
      {{{kSp},
        "sequence_parallel: true needs tensor_model_parallel_size above 1, got 1; nearest: false, or 2 ranks",
        {kSp, kTp + "2"}},
       {{"/cluster.gpus_per_node=3", "/grpo.num_prompts_per_step=24", "/policy.train_global_batch_size=384", kTp + "3"},
        "tensor_model_parallel_size 3 does not divide num_attention_heads 8; nearest: 2 or 4",
        {kTp + "2"}},
       {{"/cluster.gpus_per_node=3", "/grpo.num_prompts_per_step=24", "/policy.train_global_batch_size=384", kTp + "3"},
        "num_key_value_heads 4 is neither a multiple nor a divisor of tensor_model_parallel_size 3; nearest: 2 "
        "or 4",
        {kTp + "8"}},
       {{kTp + "8", "/policy.hf_config_overrides={intermediate_size: 100}"},
        "tensor_model_parallel_size 8 does not divide intermediate_size 100; nearest: 5 or 10",
        {kTp + "4", "/policy.hf_config_overrides={intermediate_size: 100}"}},
       {{"tp_comm_overlap=true", kTp + "2"},
        "tp_comm_overlap: needs sequence_parallel: true; nearest: false",
        {"tp_comm_overlap=true", kTp + "2", kSp}}});
}

TEST_CASE("rules 11 to 15, 19 and 20: the pipeline") {
  check_rules(
      kDense,
      {{{kVpp + "2"},
        "virtual_pipeline_model_parallel_size: the interleaved schedule needs pipeline_model_parallel_size above 1, "
        "got 1; nearest: pipeline_model_parallel_size 2, or virtual_pipeline_model_parallel_size null",
        {kVpp + "2", kPp + "2"}},
       {{kVpp + "2", kPp + "2", "overlap_p2p_comm=false"},
        "the interleaved schedule on 2 stages needs overlap_p2p_comm: true",
        {kVpp + "2", kPp + "4", "overlap_p2p_comm=false"}},
       {{"/policy.hf_config_overrides={num_hidden_layers: 9}", kPp + "4"},
        "pipeline_model_parallel_size 4: num_hidden_layers 9 = 9 is no multiple of the 4 stages that share them; "
        "nearest: 3 or 9",
        {kPp + "4"}},
       {{kPp + "4", "num_layers_in_first_pipeline_stage=1"},
        "num_hidden_layers 8 - 1 in the first stage = 7 is no multiple of the 3 stages that share them; nearest: 2 or "
        "8",
        {kPp + "4", "num_layers_in_first_pipeline_stage=2"}},
       {{kPp + "4", "account_for_embedding_in_pipeline_split=true"},
        "num_hidden_layers 8 + the embedding = 9 is no multiple of the 4 stages",
        {kPp + "2", "account_for_embedding_in_pipeline_split=true", "account_for_loss_in_pipeline_split=true"}},
       {{kPp + "2", kVpp + "3"},
        "3 chunks do not divide the 4 layers of a stage; nearest: 2 or 4",
        {kPp + "2", kVpp + "4"}},
       {{kPp + "2", "num_layers_per_virtual_pipeline_stage=3"},
        "3 does not divide the 4 layers of a stage; nearest: 2 or 4",
        {kPp + "2", "num_layers_per_virtual_pipeline_stage=2"}},
       {{kPp + "2", kVpp + "2", "num_layers_per_virtual_pipeline_stage=2"},
        "num_layers_per_virtual_pipeline_stage and virtual_pipeline_model_parallel_size are set, wanted at most one of "
        "them",
        {kPp + "2", "num_layers_per_virtual_pipeline_stage=2"}},
       {{kPp + "2", "num_layers_in_first_pipeline_stage=4", "account_for_loss_in_pipeline_split=true"},
        "account_for_loss_in_pipeline_split: does not go with num_layers_in_first_pipeline_stage",
        {kPp + "2", "num_layers_in_first_pipeline_stage=3"}},
       {{kPp + "2", "overlap_p2p_comm=true"},
        "overlap_p2p_comm: true needs the interleaved schedule (virtual_pipeline_model_parallel_size), got none; "
        "nearest: false",
        {kPp + "2", kVpp + "2", "overlap_p2p_comm=true"}},
       {{kPp + "4", kVpp + "2", "overlap_p2p_comm=true", "batch_p2p_comm=true"},
        "overlap_p2p_comm: does not go with batch_p2p_comm: true; nearest: batch_p2p_comm false",
        {kPp + "4", kVpp + "2", "batch_p2p_comm=true"}},
       {{kPp + "2", "pipeline_dtype=null"},
        "pipeline_dtype: null, but 2 stages send in some type; nearest: bfloat16",
        {kPp + "2", "pipeline_dtype=float32"}}});
}

TEST_CASE("rule 16: the layout as text") {
  check_rules(
      kDense,
      {{{kPp + "2", kLayout + "'Et*8|L'", "num_layers_in_last_pipeline_stage=1"},
        "pipeline_model_parallel_layout: does not go with num_layers_in_last_pipeline_stage: give one of them",
        {kPp + "2", kLayout + "'Et*8|L'"}},
       {{kPp + "2", kLayout + "'Et*2|t*5|tL'"},
        "has 3 stages, wanted a multiple of pipeline_model_parallel_size 2; nearest: 2 or 4",
        {kPp + "2", kLayout + "'Et*2|t*2|t*3|tL'"}},
       {{kPp + "2", kLayout + "'Et*3|t*4L'"},
        "holds 7 decoder layers (t), wanted num_hidden_layers 8",
        {kPp + "2", kLayout + "'E,t*3|,t*5,L'"}},
       {{kPp + "2", kLayout + "'t*4|t*4L'"},
        "the first layer of the first stage must be the one embedding (E), got 0",
        {kPp + "2", kLayout + "'Et*4|t*4L'"}},
       {{kPp + "2", kLayout + "'EEt*4|t*4L'"}, "must be the one embedding (E), got 2 of them", {kPp + "1"}},
       {{kPp + "2", kLayout + "'Et*4|t*4'"},
        "the last layer of the last stage must be the one loss (L), got 0 of them",
        {kPp + "1"}},
       {{kPp + "2", kLayout + "'Et*4|x*4L'"}, "'x' is no layer; there are E (embedding)", {kPp + "1"}},
       {{kPp + "2", kLayout + "'E(t*4|t*4L'"}, "a '(' without ')'", {kPp + "1"}},
       {{kPp + "2", kLayout + "'Et*4)|t*4L'"}, "a ')' without '('", {kPp + "1"}},
       {{kPp + "2", kLayout + "'Et*|t*4L'"}, "a '*' without a number behind it", {kPp + "1"}},
       {{kPp + "2", kLayout + "'E(t*99999)*99999|L'"}, "too many layers", {kPp + "1"}},
       {{kPp + "2", kLayout + "'E(t*4|t*4)L'"},
        "a group needs a count: (tttt|tttt)*2",
        {kPp + "2", kLayout + "'E, (t*4)*1 | (t*2)*2, L'"}},
       {{kPp + "2", kLayout + "'E((t)*2)*2|t*4L'"}, "a group holds another group; write one of them out", {kPp + "1"}},
       {{kPp + "2", kLayout + "'E()*2|t*8L'"}, "'()' groups nothing", {kPp + "1"}},
       {{kPp + "2", kLayout + "[embedding, loss]"},
        "text 'embedding' is no stage; wanted a list of lists",
        {kPp + "1"}},
       {{kPp + "2", kLayout + "'Et*8|mL'"}, "holds 1 layers of multi-token prediction (m)", {kPp + "1"}},
       {{kPp + "2", kLayout + "[[embedding, layer], [loss]]"},
        "text 'layer' is no layer; there are embedding, decoder",
        {kPp + "2",
         kLayout + "[[embedding, decoder, decoder, decoder, decoder], [decoder, decoder, decoder, decoder, loss]]"}},
       {{kPp + "2", kLayout + "[[embedding, 8], [loss]]"},
        "8 is no layer; there are embedding, decoder",
        {kPp + "2",
         kLayout +
             "[[Embedding, ' decoder ', decoder, decoder, decoder], [decoder, decoder, decoder, decoder, LOSS]]"}}});
}

TEST_CASE("rules 17, 18 and 23: micro-batches") {
  // 512 samples, 2 x 4 data-parallel ranks: 512 / (micro batch x 2).
  const Overrides base = {kPp + "4", kVpp + "2", "/policy.logprob_batch_size=1"};
  const auto with = [&](const Overrides& more) {
    Overrides all = more;
    all.insert(all.end(), base.begin(), base.end());
    return all;
  };
  const std::string group = "microbatch_group_size_per_vp_stage=", micro = "/policy.train_micro_batch_size=";
  check_rules(kDense,
              {{with({group + "3", micro + "32"}),
                "got 3, wanted pipeline_model_parallel_size 4 to 8, the micro-batches of a step; nearest: 4",
                with({group + "4", micro + "32"})},
               {with({group + "9", micro + "32"}),
                "got 9, wanted pipeline_model_parallel_size 4 to 8, the micro-batches of a step; nearest: 8",
                with({group + "8", micro + "32"})},
               {with({group + "7", micro + "32"}),
                "8 micro-batches in groups of 7 leave 1, wanted 0 or at least the 4 stages, for fewer leave a bubble; "
                "nearest: 4 or 8",
                with({group + "4", micro + "32"})},
               {with({micro + "128"}),
                "the interleaved schedule needs at least 4 micro-batches a step (one for each stage), got 2",
                with({micro + "64"})},
               {with({group + "3", kPacking}), "got 3, wanted at least pipeline_model_parallel_size 4; nearest: 4",
                with({group + "4", kPacking})},
               {{"/policy.train_micro_batch_size=3"},
                "policy.train_micro_batch_size: got 3, which does not divide the 64 samples",
                {"/policy.train_micro_batch_size=2"}},
               {{"/policy.train_global_batch_size=4", kTp + "1"},
                "policy.train_global_batch_size: got 4, wanted a multiple of the 8 data-parallel ranks",
                {"/policy.train_global_batch_size=8", "/policy.train_micro_batch_size=1"}}});
}

TEST_CASE("rules 21 and 22: context parallelism") {
  const auto heads = [](const std::string& query, const std::string& key_value) {
    return "/policy.hf_config_overrides={num_attention_heads: " + query + ", num_key_value_heads: " + key_value + "}";
  };
  const std::string sizes = "hierarchical_context_parallel_sizes=", type = "cp_comm_type=";
  check_rules(
      kDense,
      {{{kCp + "2"},
        "context_parallel_size: 2 needs policy.sequence_packing.enabled: true; nearest: 1 without packing",
        {kCp + "2", kPacking, lengths(4)}},
       {{kCp + "4", kPacking, lengths(12)},
        "got 12, wanted a multiple of 8 (2 x context_parallel_size 4); nearest: 8 or 16",
        {kCp + "4", kPacking, lengths(16)}},
       {{kCp + "2", kTp + "2", kSp, kPacking, lengths(4)},
        "got 4, wanted a multiple of 8 (2 x context_parallel_size 2 x tensor_model_parallel_size 2 with "
        "sequence_parallel); nearest: 8",
        {kCp + "2", kTp + "2", kSp, kPacking, lengths(8)}},
       {{kCp + "4", kPacking, lengths(8), "/policy.max_total_sequence_length=100"},
        "policy.max_total_sequence_length: got 100, wanted a multiple of 8 (2 x context_parallel_size 4); nearest: 96 "
        "or 104",
        {kCp + "4", kPacking, lengths(8), "/policy.max_total_sequence_length=104"}},
       {{kCp + "4", kPacking, lengths(8), type + "ring"},
        "cp_comm_type: got 'ring', wanted one of p2p, all_gather, a2a, a2a+p2p",
        {kCp + "4", kPacking, lengths(8), type + "all_gather"}},
       {{kCp + "4", kPacking, lengths(8), type + "[p2p, a2a]"},
        "a list of 2, wanted one for each of num_hidden_layers 8; nearest: one text for all",
        {kCp + "4", kPacking, lengths(8), type + "[p2p, p2p, p2p, p2p, p2p, p2p, p2p, a2a]"}},
       {{kCp + "4", kPacking, lengths(8), type + "a2a", heads("8", "3")},
        "a2a shares heads: num_key_value_heads 3 is no multiple or divisor of 4 (context 4 x tensor parallel 1); "
        "nearest: p2p",
        {kCp + "4", kPacking, lengths(8), type + "a2a", heads("8", "2")}},
       {{kCp + "4", kPacking, lengths(8), type + "a2a", heads("6", "2")},
        "a2a shares heads: num_attention_heads 6 is no multiple of 4 (context 4 x tensor parallel 1); nearest: p2p",
        {kCp + "2", kPacking, lengths(8), type + "a2a", heads("6", "2")}},
       {{kCp + "4", kPacking, lengths(8), type + "'a2a+p2p'"},
        "hierarchical_context_parallel_sizes: a2a+p2p needs the sizes of its two exchanges, whose product is "
        "context_parallel_size 4; nearest: [2, 2]",
        {kCp + "4", kPacking, lengths(8), type + "'a2a+p2p'", sizes + "[2, 2]"}},
       {{kCp + "4", kPacking, lengths(8), type + "'a2a+p2p'", sizes + "[2, 4]"},
        "got [2, 4], wanted two sizes whose product is context_parallel_size 4; nearest: [2, 2]",
        {kCp + "4", kPacking, lengths(8), type + "'a2a+p2p'", sizes + "[4, 1]"}}});
}

TEST_CASE("a layout without its model at hand is checked as far as it goes, and one line says so") {
  const auto resolved = resolve_text({"++policy.megatron_cfg.enabled=true", "++policy.megatron_cfg." + kTp + "3",
                                      "++cluster.gpus_per_node=3", "grpo.num_prompts_per_step=24",
                                      "++policy.train_global_batch_size=384"});
  CHECK(has_notice(resolved, "policy.model_name", "there is no config.json in 'm' here"));
  CHECK(std::ranges::count(resolved.notices, "policy.model_name", &hexad::config::Problem::key) == 1);
}

TEST_CASE("sizes that are no sizes are refused by the schema, and the rules live through them") {
  const MegatronFiles files(kDense);
  for (const char* key :
       {"tensor_model_parallel_size", "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage",
        "microbatch_group_size_per_vp_stage", "recompute_num_layers", "moe_router_num_groups", "moe_router_group_topk",
        "distributed_data_parallel_config.num_distributed_optimizer_instances"}) {
    for (const std::string& value : std::vector<std::string>{"0", "-3", "9000000000000000", "many", "[]", "1.5"}) {
      INFO(key << " = " << value);
      const std::string said = files.error({kPp + "2", kVpp + "2", fmt::format("{}={}", key, value)});
      if (value != "9000000000000000") check_says(said, key);
    }
  }
}
