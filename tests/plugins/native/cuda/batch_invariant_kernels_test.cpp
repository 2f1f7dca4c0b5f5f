// The kernels of the batch-invariant mode over the paged cache: decoding, whole prompts and chunks of them give the
// bits of packed rows.
#include <c10/cuda/CUDAStream.h>

#include <numeric>

#include "modeling/op/cuda/batch_invariant/attention_kernel.hpp"
#include "modeling/op/cuda/softmax_kernel.hpp"
#include "plugins/native/cuda/invariant_rows.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using namespace hexad;
using modeling::cuda::InvariantAttention;

namespace {

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

constexpr int64_t kItemRows = 128;
const std::vector<std::pair<int64_t, int64_t>> kHeads = {{4, 4}, {8, 2}, {12, 2}, {20, 1}};  // and of keys

// A sequence of queries, keys and values; in a paged cache its blocks lie in random places among nan.
struct Case {
  int64_t length, heads, kv_heads, dim, block_size;
  at::Tensor q, k, v, keys, values;  // [T, heads, D]; cache [blocks, kv_heads, block_size, D]
  std::vector<int32_t> table;

  Case(int64_t tokens, int64_t q_heads, int64_t shared, int64_t width, int64_t block)
      : length(tokens), heads(q_heads), kv_heads(shared), dim(width), block_size(block) {
    q = random({length, heads, dim}), k = random({length, kv_heads, dim}), v = random({length, kv_heads, dim});
    const int64_t count = (length + block - 1) / block, blocks = count + 5;
    keys = poisoned({blocks, kv_heads, block, dim}), values = poisoned({blocks, kv_heads, block, dim});
    const at::Tensor places = at::randperm(blocks, at::TensorOptions(at::kLong));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = places[i].item<int64_t>(), begin = i * block, end = std::min(length, begin + block);
      table.push_back(int32_t(place));
      keys[place].slice(1, 0, end - begin).copy_(k.slice(0, begin, end).transpose(0, 1));
      values[place].slice(1, 0, end - begin).copy_(v.slice(0, begin, end).transpose(0, 1));
    }
  }

  InvariantAttention call(const at::Tensor& queries, const at::Tensor& out) const {
    InvariantAttention call;
    call.q = queries.const_data_ptr(), call.q_stride = heads * dim, call.out = out.data_ptr();
    call.heads = int(heads), call.kv_heads = int(kv_heads), call.dim = int(dim);
    return call;
  }

  at::Tensor packed() const {
    const at::Tensor out = poisoned({length, heads, dim}), offsets = on_gpu({0, int32_t(length)});
    InvariantAttention c = call(q, out);
    c.q_indptr = offsets.const_data_ptr<int32_t>();
    c.keys = k.const_data_ptr(), c.values = v.const_data_ptr();
    c.key_stride = c.value_stride = kv_heads * dim, c.key_head_stride = c.value_head_stride = dim;
    c.sequences = 1, c.most_rows = int(length);
    modeling::cuda::invariant_attention(c, stream());
    synchronize();
    return out;
  }

  // Runs of queries that end at `ends`, each a sequence of its own over the first so many keys, `rows` queries each.
  // `as_items`: as a plan of prompts puts it, tiles in reverse.
  at::Tensor paged(const std::vector<int64_t>& ends, int64_t rows, bool as_items) const {
    std::vector<int32_t> q_indptr = {0}, block_indptr = {0}, last, blocks, sequences, tiles;
    std::vector<at::Tensor> queries;
    for (const int64_t end : ends) {
      const int64_t count = (end + block_size - 1) / block_size;
      queries.push_back(q.slice(0, end - rows, end));
      q_indptr.push_back(q_indptr.back() + int32_t(rows));
      blocks.insert(blocks.end(), table.begin(), table.begin() + count);
      block_indptr.push_back(int32_t(blocks.size()));
      last.push_back(int32_t(end - (count - 1) * block_size));
      for (int64_t tile = (rows * heads / kv_heads - 1) / kItemRows; tile >= 0; --tile)
        sequences.push_back(int32_t(last.size()) - 1), tiles.push_back(int32_t(tile));
    }
    const at::Tensor all = at::cat(queries).contiguous(), out = poisoned(all.sizes());
    const at::Tensor arrays[] = {on_gpu(q_indptr), on_gpu(block_indptr), on_gpu(last),
                                 on_gpu(blocks),   on_gpu(sequences),    on_gpu(tiles)};
    const auto array = [&](int i) { return arrays[i].const_data_ptr<int32_t>(); };
    InvariantAttention c = call(all, out);
    c.q_indptr = array(0), c.block_indptr = array(1), c.last_block_size = array(2), c.blocks = array(3);
    c.block_size = int(block_size), c.block_places = kv_heads * block_size;
    c.keys = keys.const_data_ptr(), c.values = values.const_data_ptr();
    c.key_stride = c.value_stride = dim, c.key_head_stride = c.value_head_stride = block_size * dim;
    if (as_items) {
      c.item_sequence = array(4), c.item_tile = array(5), c.items = int(sequences.size());
      c.item_rows = int(kItemRows);
    } else {
      c.sequences = int(ends.size()), c.most_rows = int(rows);
    }
    modeling::cuda::invariant_attention(c, stream());
    synchronize();
    return out;
  }

  // Single queries that end at `ends`: all go first through the keys before `shared`, then each through its own; but
  // every third takes all of its keys itself.
  at::Tensor cascaded(const std::vector<int64_t>& ends, int64_t shared) const {
    const int64_t count = int64_t(ends.size()), first = shared / block_size;
    const at::Tensor index = at::tensor(ends, at::kLong).to(kGpu) - 1;
    const at::Tensor queries = q.index_select(0, index), out = poisoned(queries.sizes());
    const at::Tensor states = poisoned({count, heads, dim}, at::kFloat),
                     scalars = poisoned({count, heads, 2}, at::kFloat);
    InvariantAttention c = call(queries, out);
    c.states = states.data_ptr<float>(), c.scalars = scalars.data_ptr<float>();
    c.block_size = int(block_size), c.block_places = kv_heads * block_size;
    c.keys = keys.const_data_ptr(), c.values = values.const_data_ptr();
    c.key_stride = c.value_stride = dim, c.key_head_stride = c.value_head_stride = block_size * dim;
    std::vector<int32_t> sequences, tiles, resumes, indptr = {0}, block_indptr = {0}, last, own;
    for (int64_t tile = 0; tile * 64 < count * (heads / kv_heads); ++tile)
      sequences.push_back(0), tiles.push_back(int32_t(tile));
    for (int i = 0; i < 3; ++i) sequences.push_back(0), tiles.push_back(tiles.back());  // that fill up a graph
    const at::Tensor valid = at::ones({int64_t(tiles.size())}, at::TensorOptions(at::kBool).device(kGpu));
    valid.slice(0, -3).fill_(false);
    for (int64_t i = 0; i < count; ++i) {
      const bool resumed = i % 3 != 0;
      const int64_t blocks = (ends[i] + block_size - 1) / block_size;
      resumes.insert(resumes.end(), {-7, resumed ? 1 : 0});
      own.insert(own.end(), table.begin() + (resumed ? first : 0), table.begin() + blocks);
      block_indptr.push_back(int32_t(own.size())), indptr.push_back(int32_t(i) + 1);
      last.push_back(int32_t(ends[i] - (blocks - 1) * block_size));
    }
    const at::Tensor arrays[] = {on_gpu({0, int32_t(count)}),
                                 on_gpu({0, int32_t(first)}),
                                 on_gpu({int32_t(block_size)}),
                                 on_gpu(table),
                                 on_gpu(sequences),
                                 on_gpu(tiles),
                                 on_gpu(indptr),
                                 on_gpu(block_indptr),
                                 on_gpu(last),
                                 on_gpu(own),
                                 on_gpu(resumes)};
    const auto array = [&](int i) { return arrays[i].const_data_ptr<int32_t>(); };
    c.q_indptr = array(0), c.block_indptr = array(1), c.last_block_size = array(2), c.blocks = array(3);
    c.item_sequence = array(4), c.item_tile = array(5), c.items = int(tiles.size()), c.item_rows = 64;
    c.item_valid = valid.const_data_ptr<bool>();
    c.leaves = true;
    modeling::cuda::invariant_attention(c, stream());
    c.leaves = false, c.item_sequence = nullptr;
    c.q_indptr = array(6), c.block_indptr = array(7), c.last_block_size = array(8), c.blocks = array(9);
    c.resumes = array(10) + 1, c.resume_stride = 2;
    c.sequences = int(count), c.most_rows = 1;
    modeling::cuda::invariant_attention(c, stream());
    synchronize();
    return out;
  }
};

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: batch-invariant attention has the same bits decoding, in prompts, in chunks and packed") {
  at::manual_seed(11);
  std::mt19937_64 rng(12);
  for (const int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : kHeads) {
      for (const int64_t length : {1, 17, 64, 65, 200, 1000, 4096}) {
        CAPTURE(dim);
        CAPTURE(heads);
        CAPTURE(kv_heads);
        CAPTURE(length);
        const Case in(length, heads, kv_heads, dim, length % 2 ? 16 : 24);
        const at::Tensor want = in.packed();
        std::vector<int64_t> ends = {1, length};
        for (int i = 0; i < 40; ++i) ends.push_back(1 + int64_t(rng() % uint64_t(length)));
        const at::Tensor at_ends = at::tensor(ends, at::kLong).to(kGpu) - 1;
        CHECK(at::equal(in.paged(ends, 1, false), want.index_select(0, at_ends)));
        CHECK(at::equal(in.paged({length}, length, true), want));
        const int64_t rows = 1 + int64_t(rng() % uint64_t(length)),
                      end = rows + int64_t(rng() % uint64_t(length - rows + 1));
        CAPTURE(rows);
        CAPTURE(end);
        CHECK(at::equal(in.paged({end}, rows, true), want.slice(0, end - rows, end)));
      }
    }
  }
}

TEST_CASE("native: batch-invariant attention that goes on from a shared beginning has the same bits") {
  at::manual_seed(14);
  std::mt19937_64 rng(15);
  for (const int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : kHeads) {
      for (const int64_t shared : {64, 192, 1024}) {
        CAPTURE(dim);
        CAPTURE(heads);
        CAPTURE(shared);
        const Case in(shared + 300, heads, kv_heads, dim, 16);
        std::vector<int64_t> ends = {shared + 1, shared + 64, shared + 300};
        for (int i = 0; i < 30; ++i) ends.push_back(shared + 1 + int64_t(rng() % 300));
        const at::Tensor at_ends = at::tensor(ends, at::kLong).to(kGpu) - 1;
        CHECK(at::equal(in.cascaded(ends, shared), in.packed().index_select(0, at_ends)));
      }
    }
  }
}

TEST_CASE("native: keys and values are appended as they are") {
  const int64_t rows = 37, heads = 6, kv_heads = 2, dim = 64, block = 16;
  const at::Tensor qkv = random({rows, heads + 2 * kv_heads, dim});
  const at::Tensor keys = at::zeros({9, kv_heads, block, dim}, qkv.options()), values = at::zeros_like(keys);
  std::vector<int32_t> slots(rows);
  std::iota(slots.begin(), slots.end(), 60);
  slots[5] = -1;
  const at::Tensor places = on_gpu(slots);
  native::cuda::append_keys_values(bf16(qkv), places.const_data_ptr<int32_t>(), bf16(keys), bf16(values),
                                   {int(rows), int(heads), int(kv_heads), int(dim), int(block), 0}, stream());
  synchronize();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t slot = 60 + row;
    for (const bool of_values : {false, true}) {
      const at::Tensor got = (of_values ? values : keys)[slot / block].select(1, slot % block);
      const at::Tensor want = qkv[row].narrow(0, heads + (of_values ? kv_heads : 0), kv_heads);
      CHECK(at::equal(got, row == 5 ? at::zeros_like(want) : want));
    }
  }
}

TEST_CASE("native: log-probs of draws have the bits of modeling's statistics over scaled logits") {
  at::manual_seed(13);
  const int64_t rows = 9, vocab = 4104, draws = 12;
  const at::Tensor logits = at::randn({rows, vocab}, at::TensorOptions(at::kFloat).device(kGpu)) * 4;
  std::vector<native::cuda::DrawTask> tasks(draws);
  std::vector<int32_t> tokens(draws);
  for (int64_t i = 0; i < draws; ++i) {
    tasks[i] = {0.5, i % 3 == 0 ? 1.0 : i % 3 == 1 ? 0.7 : 0.0, 1, 0, 0, int32_t(i == 4 ? -1 : i * 5 % rows)};
    tokens[i] = int32_t(i * 331 % vocab);
  }
  tasks[7].top_p = 0.5, tasks[9].top_k = 3, tasks[10].min_p = 0.1;  // theirs is the filtered distribution's
  const at::Tensor on_device =
      at::empty({int64_t(draws * sizeof(tasks[0]))}, at::TensorOptions(at::kByte).device(kGpu));
  REQUIRE(cudaMemcpy(on_device.data_ptr(), tasks.data(), size_t(on_device.numel()), cudaMemcpyHostToDevice) ==
          cudaSuccess);
  const at::Tensor ids = on_gpu(tokens), source = at::empty_like(ids),
                   targets = at::empty({draws}, ids.options().dtype(at::kLong));
  const auto floats = [&] { return at::full({draws}, 7, logits.options()); };
  const at::Tensor scale = floats(), log_sums = floats(), entropy = floats(), target_logits = floats(), got = floats();
  native::cuda::describe_draws(static_cast<const native::cuda::DrawTask*>(on_device.data_ptr()),
                               ids.const_data_ptr<int32_t>(),
                               {source.data_ptr<int32_t>(), scale.data_ptr<float>(), targets.data_ptr<int64_t>()},
                               int(vocab), int(draws), stream());
  const auto statistics = [&](const at::Tensor& from, const at::Tensor& wanted, bool mapped) {
    modeling::cuda::SoftmaxStatisticsCall call;
    call.logits = from.const_data_ptr<float>(), call.targets = wanted.const_data_ptr<int64_t>();
    if (mapped) call.source = source.const_data_ptr<int32_t>(), call.scale = scale.const_data_ptr<float>();
    call.log_sum = log_sums.data_ptr<float>(), call.entropy = entropy.data_ptr<float>();
    call.target_logits = target_logits.data_ptr<float>();
    call.rows = draws, call.columns = vocab;
    modeling::cuda::softmax_statistics(call, stream());
  };
  statistics(logits, targets, true);
  native::cuda::finish_logprobs(target_logits.const_data_ptr<float>(), log_sums.const_data_ptr<float>(),
                                targets.const_data_ptr<int64_t>(), got.data_ptr<float>(), int(draws), stream());
  // As the log-prob head does it: scaled in memory, row by row.
  std::vector<at::Tensor> scaled;
  for (const auto& task : tasks) {
    const float factor = task.row >= 0 && task.temperature > 0 ? 1.0f / float(task.temperature) : 1.0f;
    scaled.push_back(logits[std::max(task.row, 0)] * double(factor));
  }
  const at::Tensor all = at::stack(scaled);
  statistics(all, ids.to(at::kLong), false);
  const at::Tensor want = target_logits - log_sums;
  synchronize();
  for (int64_t i = 0; i < draws; ++i) {
    CAPTURE(i);
    const bool left_alone = i == 4 || i == 7 || i == 9 || i == 10;
    CHECK(got[i].item<float>() == (left_alone ? 7.0f : want[i].item<float>()));
  }
}

TEST_SUITE_END();
