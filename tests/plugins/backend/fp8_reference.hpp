// A plain step in FP8: the reference's model, whose products round their operands by the definition of the recipes, in
// ATen. A backend's step is beside it, on the same weights and tokens.
#pragma once
#include "modeling/op/function.hpp"
#include "modeling/op/rms_norm.hpp"
#include "tests/plugins/backend/reference.hpp"

namespace backend_test {

// What shares a scale; 0: all rows, or all columns.
struct Fp8Block {
  int64_t rows = 0, columns = 0;
};

// x [R, C] by way of FP8, fp32: round(x q) / q, q = (largest FP8 number) / max |x| of the block.
inline at::Tensor through_fp8(const at::Tensor& x, at::ScalarType type, const Fp8Block& block) {
  const int64_t rows = block.rows > 0 ? block.rows : x.size(0), columns = block.columns > 0 ? block.columns : x.size(1);
  const int64_t down = (x.size(0) + rows - 1) / rows, across = (x.size(1) + columns - 1) / columns;
  const at::Tensor padded =
      at::constant_pad_nd(x.to(at::kFloat), {0, across * columns - x.size(1), 0, down * rows - x.size(0)});
  const at::Tensor blocks = padded.view({down, rows, across, columns}), largest = blocks.abs().amax({1, 3}, true);
  const at::Tensor factor = at::where(largest == 0, 1.0, (type == at::kFloat8_e5m2 ? 57344.0 : 448.0) / largest);
  const at::Tensor values = (blocks * factor).to(type).to(at::kFloat) / factor;
  return values.view(padded.sizes()).slice(0, 0, x.size(0)).slice(1, 0, x.size(1));
}

// How a recipe scales the operands of y = x W^T, dx = dy W and dW = dy^T x.
struct Fp8Scales {
  Fp8Block tokens, weight;    // of x and dy, and of W, in y and dx
  Fp8Block across = {};       // of x and dy in dW
  bool weight_in_fp8 = true;  // dW is
};
inline const Fp8Scales kTensorwise = {}, kBlockwise = {{1, 128}, {128, 128}, {128, 1}},
                       kExpert = {{1, 0}, {}, {}, false};

// x W^T; casts dy to `type`, x and W to e4m3.
struct Fp8Product : hexad::modeling::Function<Fp8Product> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* ctx, const at::Tensor& x, const at::Tensor& weight, const Fp8Scales* scales,
                            at::ScalarType type) {
    ctx->save_for_backward({x, weight});
    ctx->saved_data["scales"] = reinterpret_cast<int64_t>(scales);
    ctx->saved_data["type"] = static_cast<int64_t>(type);
    return at::mm(e4m3(x, scales->tokens), e4m3(weight, scales->weight).t()).to(x.scalar_type());
  }

  static torch::autograd::variable_list backward(Context* ctx, torch::autograd::variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &grad = grads[0];
    const auto& scales = *reinterpret_cast<const Fp8Scales*>(ctx->saved_data["scales"].toInt());
    const auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    const at::Tensor of_x = at::mm(through_fp8(grad, type, scales.tokens), e4m3(weight, scales.weight));
    const at::Tensor of_weight = scales.weight_in_fp8
                                     ? at::mm(through_fp8(grad, type, scales.across).t(), e4m3(x, scales.across))
                                     : at::mm(grad.t(), x);
    return {of_x.to(x.scalar_type()), of_weight.to(weight.scalar_type()), {}, {}};
  }

  static at::Tensor e4m3(const at::Tensor& x, const Fp8Block& block) {
    return through_fp8(x, at::kFloat8_e4m3fn, block);
  }
};

// Linears of blocks are in FP8 where sizes are multiples of 16, and those of experts by the recipe tensorwise: a scale
// for each row and for each expert's weight, e4m3 throughout, and their weights' gradients are not. Embedding, routers
// and head stay in their type.
struct Fp8Reference : Reference {
  Fp8Reference(const std::filesystem::path& dir, Weights all, const std::string& format, const std::string& recipe)
      : Reference(dir, std::move(all)),
        gradients(format == "hybrid" ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn),
        blockwise(recipe == "blockwise") {}

  at::ScalarType gradients;
  bool blockwise;
  int64_t ranks = 1;  // tensor-parallel ones: each casts its part of a weight, and what meets that

  at::Tensor hidden(const Weights& with, const at::Tensor& ids, const at::Tensor& positions,
                    hexad::modeling::Attention& attention, const hexad::modeling::MoeRuns& runs) const override {
    namespace m = hexad::modeling;
    const m::Rope rope = m::make_rope(config.rope, config.head_dim, positions);
    at::Tensor stream = m::embed(with.at(m::kEmbeddingName), ids);
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      const auto w = m::layer_weights(config, layer, [&](const std::string& name) { return with.at(name); });
      const auto qkv = columns(norm(stream, w.input_norm), {w.q_proj, w.k_proj, w.v_proj});
      const auto heads = [&](const at::Tensor& x) { return x.view({x.size(0), -1, config.head_dim}); };
      at::Tensor q = heads(qkv[0]), k = heads(qkv[1]);
      if (config.qk_norm) q = norm(q, w.q_norm), k = norm(k, w.k_norm);
      const auto [turned_q, turned_k, v] = m::rotate_heads(q, k, heads(qkv[2]), rope);
      stream = stream + rows(attention.attend(layer, turned_q, turned_k, v).flatten(1), w.o_proj);
      const at::Tensor x = norm(stream, w.post_attention_norm);
      stream = stream + (config.has_experts(layer) ? experts(x, w.moe, runs(layer)) : mlp(x, w));
    }
    return norm(stream, with.at(m::kFinalNormName));
  }

 private:
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    return hexad::modeling::rms_norm(x, weight, config.rms_norm_eps);
  }

  at::Tensor product(const at::Tensor& x, const at::Tensor& weight) const {
    if (x.size(1) % 16 != 0 || weight.size(0) % 16 != 0) return at::mm(x, weight.t());
    return Fp8Product::apply(x, weight, blockwise ? &kBlockwise : &kTensorwise, gradients);
  }

  // Of weights that read one x: their rows on a rank are one tensor.
  std::vector<at::Tensor> columns(const at::Tensor& x, const std::vector<at::Tensor>& weights) const {
    std::vector<std::vector<at::Tensor>> parts(weights.size());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<at::Tensor> mine;
      std::vector<int64_t> widths;
      for (const at::Tensor& weight : weights) mine.push_back(weight.chunk(ranks, 0)[rank]);
      for (const at::Tensor& weight : mine) widths.push_back(weight.size(0));
      const std::vector<at::Tensor> made = product(x, at::cat(mine)).split_with_sizes(widths, 1);
      for (size_t i = 0; i < made.size(); ++i) parts[i].push_back(made[i]);
    }
    std::vector<at::Tensor> whole;
    for (const auto& part : parts) whole.push_back(at::cat(part, 1));
    return whole;
  }

  // Of columns of x and the weight.
  at::Tensor rows(const at::Tensor& x, const at::Tensor& weight) const {
    at::Tensor sum;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const at::Tensor part = product(x.chunk(ranks, 1)[rank], weight.chunk(ranks, 1)[rank]);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }

  at::Tensor mlp(const at::Tensor& x, const hexad::modeling::LayerWeights& w) const {
    const auto parts = columns(x, {w.gate_proj, w.up_proj});
    return rows(at::silu(parts[0]) * parts[1], w.down_proj);
  }

  at::Tensor experts(const at::Tensor& x, const hexad::modeling::MoeWeights& w,
                     const hexad::modeling::MoeRun& run) const {
    const auto linear = [&](const at::Tensor& in, const at::Tensor& weight) {
      return blockwise ? at::mm(in, weight.t()) : Fp8Product::apply(in, weight, &kExpert, at::kFloat8_e4m3fn);
    };
    const auto routing =
        hexad::modeling::topk_routing(at::mm(x, w.router.t()), config.moe->routing, w.expert_bias, run.route.selected);
    at::Tensor sum = at::zeros_like(x);
    for (int64_t e = 0; e < config.moe->num_experts; ++e) {
      const at::Tensor mine = routing.experts == e, tokens = mine.any(1).nonzero().squeeze(1);
      if (tokens.size(0) == 0) continue;
      const at::Tensor probs = (routing.probs * mine).sum(1, true).index_select(0, tokens);
      const auto parts = linear(x.index_select(0, tokens), at::cat({w.experts.gate[e], w.experts.up[e]})).chunk(2, 1);
      const at::Tensor activation = (at::silu(parts[0]) * parts[1] * probs).to(x.scalar_type());
      sum = sum.index_add(0, tokens, linear(activation, w.experts.down[e]));
    }
    return sum;
  }
};

}  // namespace backend_test
