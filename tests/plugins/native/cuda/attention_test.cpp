// Plans and kernels together: attention over a paged cache, in bf16 and e4m3, whose unwritten places are nan, against
// double precision.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "plugins/native/cuda/attention/attention.hpp"
#include "plugins/native/cuda/decode/pass_arrays.hpp"
#include "plugins/native/cuda/attention/rope_append.hpp"
#include "plugins/native/cuda/skinny.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using namespace hexad::native;
using namespace hexad::native::cuda;

namespace {

struct Case {
  int64_t heads, kv_heads, dim, block_size;
  std::vector<std::vector<int32_t>> tables;
  std::vector<int32_t> lengths, counts;  // counts: rows of a prompt; 1 decodes, and comes first
};

// Adds `members` rows that share `shared` positions (whole blocks of them) and have these lengths.
void add_group(Case& c, int32_t& next_block, int64_t shared, const std::vector<int32_t>& lengths) {
  std::vector<int32_t> prompt(shared / c.block_size);
  for (int32_t& block : prompt) block = next_block++;
  for (const int32_t length : lengths) {
    std::vector<int32_t>& table = c.tables.emplace_back(prompt);
    while (int64_t(table.size()) * c.block_size < length) table.push_back(next_block++);
    c.lengths.push_back(length), c.counts.push_back(1);
  }
}

at::Tensor expected(const Case& c, const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values) {
  std::vector<at::Tensor> rows;
  const int64_t share = c.heads / c.kv_heads;
  int64_t row = 0;
  for (size_t i = 0; i < c.tables.size(); ++i) {
    const at::Tensor table = on_gpu(c.tables[i]).to(at::kLong);
    const auto whole = [&](const at::Tensor& pool) {  // [kv_heads, positions, dim]
      return wide(pool.index_select(0, table)).permute({1, 0, 2, 3}).reshape({c.kv_heads, -1, c.dim});
    };
    const at::Tensor k = whole(keys).repeat_interleave(share, 0), v = whole(values).repeat_interleave(share, 0);
    for (int32_t r = 0; r < c.counts[i]; ++r, ++row) {
      const int64_t seen = c.lengths[i] - c.counts[i] + r + 1;
      const at::Tensor scores = k.slice(1, 0, seen).matmul(wide(q[row]).unsqueeze(2)) / std::sqrt(double(c.dim));
      rows.push_back((scores.softmax(1) * v.slice(1, 0, seen)).sum(1));
    }
  }
  return at::stack(rows);
}

// `padding`: requests and items that do nothing, as in a CUDA graph of a larger size.
void check_attention(const Case& c, int32_t blocks, int64_t padding, bool fp8, decltype(&attend_own) attend) {
  CAPTURE(c.heads);
  CAPTURE(c.kv_heads);
  CAPTURE(c.dim);
  CAPTURE(c.block_size);
  CAPTURE(padding);
  CAPTURE(fp8);
  const PlanShape plan_shape{c.heads, c.kv_heads, c.block_size};
  std::vector<DecodeRow> decodes;
  std::vector<PromptRows> prompts;
  int64_t rows = 0;
  at::Tensor unwritten = at::ones({blocks, 1, c.block_size, 1}, at::kBool);
  for (size_t i = 0; i < c.tables.size(); ++i) {
    if (c.counts[i] == 1)
      decodes.push_back({c.tables[i].data(), c.lengths[i]});
    else
      prompts.push_back({c.tables[i].data(), c.lengths[i], c.counts[i]});
    rows += c.counts[i];
    for (int32_t at = 0; at < c.lengths[i]; ++at)
      unwritten.mutable_data_ptr<bool>()[c.tables[i][at / c.block_size] * c.block_size + at % c.block_size] = false;
  }
  const auto pool = [&] {
    const at::Tensor all = random({blocks, c.kv_heads, c.block_size, c.dim}).masked_fill(unwritten.to(kGpu), NAN);
    return fp8 ? all.to(at::kFloat8_e4m3fn) : all;
  };
  const at::Tensor keys = pool(), values = pool();
  AttentionPlan plan;
  plan_attention(plan_shape, decodes, prompts, plan);
  PassArrays arrays(
      {std::max<int64_t>(rows, 64) + padding, int64_t(decodes.size() + prompts.size()) + padding, 400, plan_shape},
      kGpu);
  arrays.begin();
  PassArrays::Counts counts{.rows = rows,
                            .decode_rows = int64_t(decodes.size()),
                            .own_items = plan.own.items(),
                            .shared_items = plan.shared.items()};
  PassArrays::Counts padded = counts;
  padded.decode_rows += padding, padded.own_items += padding;
  if (counts.shared_items > 0) padded.shared_items += padding;
  arrays.upload(plan, counts, padded, nullptr);
  const int64_t width = c.heads + 2 * c.kv_heads;
  const at::Tensor qkv = random({rows, width, c.dim}), q = qkv.slice(1, 0, c.heads);
  const at::Tensor out = poisoned({rows + padding, c.heads, c.dim}),
                   partials = poisoned({plan.partials + 1, c.heads, c.dim});
  const at::Tensor sums = poisoned({plan.partials + 1, c.heads}, at::kFloat);
  const AttentionShape shape{int(c.heads), int(c.kv_heads), int(c.dim), int(c.block_size), width * c.dim};
  const LayerPools pools{keys.data_ptr(), values.data_ptr(), fp8};
  attend_shared(shape, arrays.shared(padded.decode_rows, padded.shared_items), bf16(qkv), pools, bf16(partials),
                sums.data_ptr<float>(), nullptr);
  attend(shape, arrays.own(padded.decode_rows, padded.own_items), bf16(qkv), pools, bf16(partials),
         sums.data_ptr<float>(), nullptr);
  merge_partials(bf16(partials), sums.const_data_ptr<float>(), arrays.merge(), bf16(out), int(counts.decode_rows),
                 shape.heads, shape.dim, nullptr);
  attend_causal(shape, arrays.prompt(plan.prompt.requests(), plan.prompt.items()), bf16(qkv), pools, bf16(out),
                nullptr);
  synchronize();
  // Probabilities are rounded to bf16 before they meet the values.
  const at::Tensor want = expected(c, q, keys.to(at::kBFloat16), values.to(at::kBFloat16));
  CHECK(distance(out.slice(0, 0, rows), want) < 6e-3);
  const at::Tensor got = wide(out.slice(0, 0, rows));
  CHECK(((got - want).norm(2, {1, 2}) / want.norm(2, {1, 2})).max().item<double>() < 1.5e-2);
  CHECK(out.slice(0, rows).isnan().all().item<bool>());
}

// Rows that decode, from the product that makes their queries, keys and values to the attention's result.
struct DecodeChain {
  static constexpr int kIn = 8192;  // a product that takes longer than what is launched behind it
  Case c;
  int rows, width;
  at::Tensor x, weight, qkv, keys, values, cos, sin, positions, slots, blocks, offsets, partials, sums, out;
  PassArrays arrays;
  PassArrays::Counts counts;

  DecodeChain(const Case& of, int32_t pool_blocks, cudaStream_t stream)
      : c(of),
        rows(int(c.lengths.size())),
        width(int((c.heads + 2 * c.kv_heads) * c.dim)),
        x(random({rows, kIn}, 1 / std::sqrt(double(kIn)))),
        weight(random({width, kIn})),
        qkv(poisoned({rows, width})),
        keys(random({pool_blocks, c.kv_heads, c.block_size, c.dim})),
        values(random({pool_blocks, c.kv_heads, c.block_size, c.dim})),
        arrays({64, rows, 400, {c.heads, c.kv_heads, c.block_size}}, kGpu) {
    const at::Tensor angles = at::rand({800, c.dim / 2}, at::TensorOptions(at::kFloat).device(kGpu)) * 6;
    cos = angles.cos(), sin = angles.sin();
    std::vector<int32_t> newest, slot, block, offset;
    std::vector<DecodeRow> decodes;
    for (int i = 0; i < rows; ++i) {
      const auto size = int32_t(c.block_size);
      newest.push_back(c.lengths[i] - 1);
      block.push_back(c.tables[i][newest[i] / size]), offset.push_back(newest[i] % size);
      slot.push_back(block[i] * size + offset[i]);
      decodes.push_back({c.tables[i].data(), c.lengths[i]});
    }
    positions = on_gpu(newest), slots = on_gpu(slot);
    blocks = on_gpu(block).to(at::kLong), offsets = on_gpu(offset).to(at::kLong);
    AttentionPlan plan;
    plan_attention({c.heads, c.kv_heads, c.block_size}, decodes, {}, plan);
    REQUIRE(plan.shared.items() == 0);
    counts = {.rows = rows, .decode_rows = rows, .own_items = plan.own.items(), .shared_items = 0};
    arrays.begin();
    arrays.upload(plan, counts, counts, stream);
    partials = poisoned({plan.partials + 1, c.heads, c.dim}), sums = poisoned({plan.partials + 1, c.heads}, at::kFloat);
    out = poisoned({rows, c.heads, c.dim});
  }

  // As before the pass: nothing is at the newest positions, and in the results.
  void forget() {
    for (const at::Tensor& pool : {keys, values})
      pool.permute({0, 2, 1, 3}).index_put_({blocks, offsets}, at::full({}, NAN, pool.options()));
    for (const at::Tensor& result : {qkv, partials, sums, out}) result.fill_(NAN);
  }

  // `apart`: each kernel when the one before is done, else right behind it.
  void run(bool apart, cudaStream_t stream) {
    const auto pause = [&] {
      if (apart) synchronize();
    };
    const AttentionShape shape{int(c.heads), int(c.kv_heads), int(c.dim), int(c.block_size), width};
    const LayerPools pools{keys.data_ptr(), values.data_ptr(), /*fp8=*/false};
    pause();
    multiply_skinny(bf16(x), bf16(weight), nullptr, bf16(qkv), rows, kIn, width, stream);
    pause();
    rope_append(bf16(qkv), {nullptr, nullptr}, cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                positions.const_data_ptr<int32_t>(), slots.const_data_ptr<int32_t>(), pools,
                {rows, shape.heads, shape.kv_heads, shape.dim, shape.block_size, 1e-5f}, stream);
    pause();
    attend_rows(shape, arrays.own(counts.decode_rows, counts.own_items), bf16(qkv), pools, bf16(partials),
                sums.data_ptr<float>(), stream);
    pause();
    merge_partials(bf16(partials), sums.const_data_ptr<float>(), arrays.merge(), bf16(out), rows, shape.heads,
                   shape.dim, stream);
  }
};

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: attention of rows alone, in groups and of prompts, for odd shapes") {
  const int64_t shapes[][3] = {{32, 8, 128}, {12, 2, 128}, {9, 3, 64},  {4, 4, 64},
                               {16, 8, 128}, {32, 1, 64},  {64, 8, 128}};
  for (const auto& [heads, kv_heads, dim] : shapes) {
    for (const int64_t block_size : {16, 1, 5, 64}) {
      Case c{heads, kv_heads, dim, block_size, {}, {}, {}};
      int32_t next = 0;
      add_group(c, next, 0, {1});
      add_group(c, next, 0, {127, 128, 129, 2});
      add_group(c, next, 320, {321, 330, 700, 450, 322});
      add_group(c, next, 640, std::vector<int32_t>(19, 660));
      add_group(c, next, 0, {1500});
      const bool rows = is_row_shape({int(heads), int(kv_heads), int(dim), int(block_size), 8});
      CHECK(rows == (heads / kv_heads <= 8));
      Case with_prompts = c;
      int32_t last = next;
      for (const auto& [count, before] : {std::pair{2, 0}, {33, 0}, {128, 70}, {7, 300}}) {
        std::vector<int32_t>& table = with_prompts.tables.emplace_back();
        with_prompts.counts.push_back(count), with_prompts.lengths.push_back(count + before);
        while (int64_t(table.size()) * block_size < with_prompts.lengths.back()) table.push_back(last++);
      }
      for (const bool fp8 : {false, true}) {
        check_attention(c, next, 0, fp8, attend_own);
        check_attention(c, next, 13, fp8, attend_own);
        check_attention(with_prompts, last, 0, fp8, attend_own);
      }
      for (const int64_t padding : {0, 13})
        if (rows) check_attention(c, next, padding, false, attend_rows);
    }
  }
}

// The attention starts while the product still runs and reads ahead; the newest position it has to read again.
TEST_CASE("native: attention of few rows reads the newest position right behind the kernel that writes it") {
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool(false, kGpu.index());
  const c10::cuda::CUDAStreamGuard guard(stream);
  const int64_t shapes[][3] = {{12, 2, 128}, {24, 4, 64}};
  for (const auto& [heads, kv_heads, dim] : shapes) {
    CAPTURE(dim);
    Case c{heads, kv_heads, dim, 16, {}, {}, {}};
    int32_t next = 0;
    add_group(c, next, 0, {1, 2, 16, 17, 64, 65, 129, 700});  // in any lane's place, first and later tiles
    DecodeChain chain(c, next, stream);
    REQUIRE(is_skinny(chain.rows, DecodeChain::kIn, chain.width));
    REQUIRE(is_row_shape({int(heads), int(kv_heads), int(dim), 16, chain.width}));
    chain.forget();
    chain.run(/*apart=*/true, stream);
    synchronize();
    const at::Tensor want = chain.out.clone();
    const at::Tensor q = chain.qkv.view({chain.rows, -1, dim}).slice(1, 0, heads);
    CHECK(distance(want, expected(c, q, chain.keys, chain.values)) < 6e-3);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    chain.run(/*apart=*/false, stream);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
    for (int i = 0; i < 50; ++i) {
      CAPTURE(i);
      chain.forget();
      chain.run(/*apart=*/false, stream);
      const at::Tensor direct = chain.out.clone();
      chain.forget();
      REQUIRE(cudaGraphLaunch(ready, stream) == cudaSuccess);
      CHECK(at::equal(direct, want));
      CHECK(at::equal(chain.out, want));
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
  }
}

TEST_SUITE_END();
