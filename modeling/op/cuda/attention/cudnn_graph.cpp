#include "modeling/op/cuda/attention/cudnn_graph.hpp"

#include <ATen/Functions.h>
#include <ATen/cudnn/Handle.h>

#include <array>
#include <cmath>
#include <compare>
#include <unordered_map>

#include "modeling/error.hpp"

// LibTorch exports functions of the frontend that it was built with; ours must not be taken for them.
#define cudnn_frontend hexad_cudnn_frontend
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

namespace hexad::modeling::cuda {
namespace {

namespace fe = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using Attributes = std::shared_ptr<fe::Tensor_attributes>;

// In elements.
struct Strides {
  int64_t token = 0, head = 0;
  auto operator<=>(const Strides&) const = default;
};

struct GraphKey {
  int64_t device, rows, length, tokens;  // tokens: 0 forward, where it makes no difference
  int64_t heads, kv_heads, width, value_width, window;
  at::ScalarType dtype;
  bool backward;
  Strides q, k, v, out, log_sums, grad_out, grad_q, grad_k, grad_v;
  auto operator<=>(const GraphKey&) const = default;
};

// Names of the graph's tensors; the row starts of a tensor have its name plus kStarts.
enum Name : int64_t { kQ, kK, kV, kOut, kLogSums, kGradOut, kGradQ, kGradK, kGradV, kQueryLengths, kKeyLengths };
constexpr int64_t kStarts = 100;

struct Graph {
  std::shared_ptr<fe::Graph> graph;
  int64_t workspace = 0;
};

Strides strides_of(const at::Tensor& x) {
  return x.defined() ? Strides{x.stride(0), x.dim() > 1 ? x.stride(1) : 1} : Strides{};
}

GraphKey key_of(const AttentionTensors& t, const RowBounds& bounds, int64_t window) {
  const bool backward = t.grad_out.defined();
  return {t.q.device().index(),
          bounds.rows,
          bounds.length,
          backward ? bounds.tokens : 0,
          t.q.size(1),
          t.k.size(1),
          t.q.size(2),
          t.v.size(2),
          window < bounds.length ? window : 0,
          t.q.scalar_type(),
          backward,
          strides_of(t.q),
          strides_of(t.k),
          strides_of(t.v),
          strides_of(t.out),
          strides_of(t.log_sums),
          strides_of(t.grad_out),
          strides_of(t.grad_q),
          strides_of(t.grad_k),
          strides_of(t.grad_v)};
}

void require(const cudnn_frontend::error_t& status, const GraphKey& key) {
  if (status.is_good()) return;
  fail("attention through cuDNN, {} pass, {} rows of up to {} tokens, {} heads of {} over {} of {}, {}: {}",
       key.backward ? "backward" : "forward", key.rows, key.length, key.heads, key.width, key.kv_heads, key.value_width,
       at::toString(key.dtype), status.err_msg);
}

// Adds the tensors of a graph.
class Builder {
 public:
  Builder(fe::Graph& graph, const GraphKey& key) : graph_(graph), key_(key) {}

  Attributes lengths(Name name) { return index(name, key_.rows, DataType_t::INT32); }
  Attributes input(Name name, int64_t heads, int64_t width, const Strides& strides) {
    const Attributes tensor = graph_.tensor(fe::Tensor_attributes());
    place(tensor, name, heads, width, strides);
    return tensor;
  }
  void output(const Attributes& tensor, Name name, int64_t heads, int64_t width, const Strides& strides) {
    tensor->set_output(true);
    place(tensor, name, heads, width, strides);
  }

 private:
  Attributes index(int64_t name, int64_t size, DataType_t type) {
    return graph_.tensor(
        fe::Tensor_attributes().set_uid(name).set_dim({size, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(type));
  }
  // [rows, heads, length, width], each row at its start.
  void place(const Attributes& tensor, Name name, int64_t heads, int64_t width, const Strides& strides) {
    tensor->set_uid(name)
        .set_name("hexad_" + std::to_string(name))
        .set_dim({key_.rows, heads, key_.length, width})
        .set_stride({strides.token * key_.length, strides.head, strides.token, 1})
        .set_ragged_offset(index(name + kStarts, key_.rows + 1, DataType_t::INT64));
    if (name == kLogSums) tensor->set_data_type(DataType_t::FLOAT);
  }

  fe::Graph& graph_;
  const GraphKey& key_;
};

// What both directions say of the mask and the scale.
template <typename Options>
void describe(Options& options, Builder& add, const GraphKey& key) {
  options.set_attn_scale(float(1.0 / std::sqrt(double(key.width))))
      .set_padding_mask(true)
      .set_seq_len_q(add.lengths(kQueryLengths))
      .set_seq_len_kv(add.lengths(kKeyLengths))
      .set_diagonal_alignment(cudnn_frontend::DiagonalAlignment_t::TOP_LEFT)
      .set_diagonal_band_right_bound(0);
  if (key.window > 0) options.set_diagonal_band_left_bound(int(key.window));
}

void add_forward(fe::Graph& graph, Builder& add, const GraphKey& key) {
  auto options = fe::SDPA_attributes().set_name("hexad_attention").set_generate_stats(true);
  describe(options, add, key);
  auto [out, log_sums] =
      graph.sdpa(add.input(kQ, key.heads, key.width, key.q), add.input(kK, key.kv_heads, key.width, key.k),
                 add.input(kV, key.kv_heads, key.value_width, key.v), options);
  add.output(out, kOut, key.heads, key.value_width, key.out);
  add.output(log_sums, kLogSums, key.heads, 1, key.log_sums);
}

void add_backward(fe::Graph& graph, Builder& add, const GraphKey& key) {
  auto options = fe::SDPA_backward_attributes().set_name("hexad_attention_backward");
  describe(options, add, key);
  // The workspace grows with the tokens of the pack and not with rows x length.
  options.set_max_total_seq_len_q(key.tokens).set_max_total_seq_len_kv(key.tokens);
  auto [grad_q, grad_k, grad_v] = graph.sdpa_backward(
      add.input(kQ, key.heads, key.width, key.q), add.input(kK, key.kv_heads, key.width, key.k),
      add.input(kV, key.kv_heads, key.value_width, key.v), add.input(kOut, key.heads, key.value_width, key.out),
      add.input(kGradOut, key.heads, key.value_width, key.grad_out), add.input(kLogSums, key.heads, 1, key.log_sums),
      options);
  add.output(grad_q, kGradQ, key.heads, key.width, key.grad_q);
  add.output(grad_k, kGradK, key.kv_heads, key.width, key.grad_k);
  add.output(grad_v, kGradV, key.kv_heads, key.value_width, key.grad_v);
}

Graph build(const GraphKey& key, cudnnHandle_t handle) {
  Graph made{std::make_shared<fe::Graph>()};
  made.graph->set_io_data_type(key.dtype == at::kHalf ? DataType_t::HALF : DataType_t::BFLOAT16)
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
  Builder add(*made.graph, key);
  (key.backward ? add_backward : add_forward)(*made.graph, add, key);
  require(made.graph->build(handle, {cudnn_frontend::HeurMode_t::A}), key);
  require(made.graph->get_workspace_size(made.workspace), key);
  return made;
}

// Graphs stay where they are: nothing removes one.
struct Graphs {
  std::mutex mutex;
  std::map<GraphKey, Graph> made;
};
Graphs& graphs() {
  static Graphs& all = *new Graphs;  // never destroyed: CUDA may be gone by then
  return all;
}

const Graph& graph_of(const GraphKey& key, cudnnHandle_t handle) {
  const std::lock_guard lock(graphs().mutex);
  std::map<GraphKey, Graph>& made = graphs().made;
  auto found = made.find(key);
  if (found == made.end()) found = made.emplace(key, build(key, handle)).first;
  return found->second;
}

}  // namespace

void run_cudnn_attention(const AttentionTensors& t, const RaggedRows& rows, int64_t window) {
  const GraphKey key = key_of(t, rows.bounds(), window);
  const cudnnHandle_t handle = at::native::getCudnnHandle();  // of this thread, on the current stream
  const Graph& graph = graph_of(key, handle);
  std::unordered_map<int64_t, void*> pointers{{kQueryLengths, rows.lengths().data_ptr()},
                                              {kKeyLengths, rows.lengths().data_ptr()}};
  const auto bind = [&](Name name, const at::Tensor& x) {
    if (!x.defined()) return;
    pointers.emplace(name, x.data_ptr());
    pointers.emplace(name + kStarts, rows.starts(x.stride(0)).data_ptr());
  };
  bind(kQ, t.q), bind(kK, t.k), bind(kV, t.v), bind(kOut, t.out), bind(kLogSums, t.log_sums);
  bind(kGradOut, t.grad_out), bind(kGradQ, t.grad_q), bind(kGradK, t.grad_k), bind(kGradV, t.grad_v);
  const at::Tensor workspace = at::empty({graph.workspace}, t.q.options().dtype(at::kByte));
  require(graph.graph->execute(handle, pointers, workspace.data_ptr()), key);
}

int64_t cudnn_graph_count() {
  const std::lock_guard lock(graphs().mutex);
  return int64_t(graphs().made.size());
}

}  // namespace hexad::modeling::cuda
