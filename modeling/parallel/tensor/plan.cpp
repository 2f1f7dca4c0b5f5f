#include "modeling/parallel/tensor/plan.hpp"

#include <functional>
#include <string_view>

#include <fmt/ranges.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

enum class Cut { whole, rows, columns, key_value, vocabulary };

struct Rule {
  std::string_view part;  // of the name: "self_attn.q_proj."
  Cut weight, bias = Cut::whole;
  GradientSum gradient = GradientSum::none;  // of what is not cut
};

// The first rule whose part stands in the name holds; what no rule names is whole, and sees this rank's tokens alone.
constexpr Rule kRules[] = {
    {.part = "embed_tokens.", .weight = Cut::vocabulary},
    {.part = "lm_head.", .weight = Cut::vocabulary},
    {.part = "self_attn.q_proj.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = "self_attn.k_proj.",
     .weight = Cut::key_value,
     .bias = Cut::key_value,
     .gradient = GradientSum::equal_slices},
    {.part = "self_attn.v_proj.",
     .weight = Cut::key_value,
     .bias = Cut::key_value,
     .gradient = GradientSum::equal_slices},
    {.part = "self_attn.q_b_proj.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = "self_attn.kv_b_proj.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = "self_attn.o_proj.", .weight = Cut::columns, .gradient = GradientSum::if_sequence},
    {.part = "self_attn.q_norm.", .weight = Cut::whole, .gradient = GradientSum::all},
    {.part = "self_attn.k_norm.", .weight = Cut::whole, .gradient = GradientSum::all},
    {.part = "gate_proj.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = "up_proj.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = "down_proj.", .weight = Cut::columns, .gradient = GradientSum::if_sequence},
    // Mixtral's names of an expert's gate, up and down.
    {.part = ".w1.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = ".w3.", .weight = Cut::rows, .bias = Cut::rows},
    {.part = ".w2.", .weight = Cut::columns, .gradient = GradientSum::if_sequence},
};

const Rule& rule_of(const std::string& name) {
  static constexpr Rule kWhole{.part = "", .weight = Cut::whole, .gradient = GradientSum::if_sequence};
  for (const Rule& rule : kRules)
    if (name.find(rule.part) != std::string::npos) return rule;
  return kWhole;
}

void narrow(WeightSlice& slice, size_t dim, const Range& range) {
  slice.offsets[dim] = range.begin;
  slice.shape[dim] = range.size();
}

Range equal_part(int64_t length, int64_t rank, int64_t ranks) {
  return {length * rank / ranks, length * (rank + 1) / ranks};
}

// "1, 2 or 4": the sizes up to 64 for which `fits` holds.
std::string sizes_that_fit(const std::function<bool(int64_t)>& fits) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= 64; ++size)
    if (fits(size)) sizes.push_back(size);
  return fmt::format("{}", fmt::join(sizes, ", "));
}

void require_divides(const char* what, int64_t amount, int64_t ranks) {
  if (amount % ranks == 0) return;
  fail("tensor parallel size {} does not divide {} = {}; sizes that do: {}", ranks, what, amount,
       sizes_that_fit([&](int64_t size) { return amount % size == 0; }));
}

}  // namespace

Group sum_group(GradientSum sum, const TensorParallel& tp, const Group& equal_heads) {
  switch (sum) {
    case GradientSum::none: return {};
    case GradientSum::all: return tp.group;
    case GradientSum::if_sequence: return tp.sequence_parallel ? tp.group : Group();
    case GradientSum::equal_slices: return equal_heads;
  }
  return {};
}

TensorPart tensor_part(const ModelConfig& config, const WeightInfo& info, int64_t rank, int64_t ranks) {
  TensorPart part{{std::vector<int64_t>(info.shape.size(), 0), info.shape}, rank, GradientSum::none};
  if (ranks == 1) return part;
  const Rule& rule = rule_of(info.hf_name);
  const bool bias = info.hf_name.ends_with("bias");
  const Cut cut = bias ? rule.bias : rule.weight;
  const int64_t heads = config.num_kv_heads;
  switch (cut) {
    case Cut::whole: part.gradient = rule.gradient; return part;
    case Cut::rows: narrow(part.slice, 0, equal_part(info.shape[0], rank, ranks)); break;
    case Cut::columns: narrow(part.slice, 1, equal_part(info.shape[1], rank, ranks)); break;
    case Cut::vocabulary: narrow(part.slice, 0, chunk_range(info.shape[0], ranks, rank)); break;
    case Cut::key_value: {
      const int64_t copies = std::max<int64_t>(1, ranks / heads), width = info.shape[0] / heads;
      const int64_t each = std::max<int64_t>(1, heads / ranks), first = rank / copies * each;
      narrow(part.slice, 0, {first * width, (first + each) * width});
      part.copy = rank % copies;
      part.gradient = copies > 1 ? GradientSum::equal_slices : GradientSum::none;
      return part;
    }
  }
  part.copy = 0;
  return part;
}

void check_tensor_parallel(const ModelConfig& config, int64_t ranks) {
  require_divides("num_attention_heads", config.num_heads, ranks);
  if (config.num_kv_heads % ranks != 0 && ranks % config.num_kv_heads != 0) {
    fail("tensor parallel size {} is neither a divisor nor a multiple of num_key_value_heads = {}; sizes that are: {}",
         ranks, config.num_kv_heads, sizes_that_fit([&](int64_t size) {
           return config.num_heads % size == 0 && (config.num_kv_heads % size == 0 || size % config.num_kv_heads == 0);
         }));
  }
  bool dense = false;  // a layer without experts: intermediate_size is its width
  for (int64_t layer = 0; layer < config.num_layers; ++layer) dense |= !config.has_experts(layer);
  if (dense) require_divides("intermediate_size", config.intermediate_size, ranks);
  if (chunk_range(config.vocab_size, ranks, ranks - 1).size() == 0) {
    fail("a vocabulary of {} leaves tensor-parallel rank {} without a row; use fewer ranks than {}", config.vocab_size,
         ranks - 1, ranks);
  }
}

}  // namespace hexad::modeling
