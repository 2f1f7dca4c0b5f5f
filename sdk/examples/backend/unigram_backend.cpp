// A whole backend on one page: the unigram model, p(token) = softmax(theta / temperature)[token], whatever came before.
// It shows every duty of a backend on something that can be checked by hand: log-probs, gradients summed over
// micro-batches and ranks, an optimizer step, kept weights, checkpoints, weights on their way to a generator.
#include <hexad/plugin.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

namespace {

using namespace hexad::sdk;

class Unigram {
 public:
  Unigram(const Call& call, const Config& config)
      : vocab_(config.get<int64_t>("vocab_size", 0)), default_lr_(config.get("optimizer.kwargs.lr", 0.1)) {
    if (vocab_ < 1)
      fail(HEXAD_INVALID_ARGUMENT, "plugin_config.vocab_size: got %lld, wanted the tokens of the model's vocabulary",
           static_cast<long long>(vocab_));
    if (call.device().device_type != kDLCPU)
      fail(HEXAD_UNIMPLEMENTED, "unigram runs on the CPU: set cluster.device: cpu");
    theta_.resize(static_cast<size_t>(vocab_));
    grad_.resize(theta_.size());
  }

  void describe(const Call& call, hexad_backend_info& info) {
    static const char* const outputs[] = {"logprobs"};
    static const char* const inputs[] = {"input_ids"};
    hexad_comm* dp = call.comm("dp");
    info.num_parameters = vocab_;
    info.dp_rank = dp ? call.host()->comm_rank(dp) : 0;
    info.dp_size = dp ? call.host()->comm_size(dp) : 1;
    info.tp_size = info.pp_size = info.cp_size = info.ep_size = 1;
    info.sequence_multiple = info.micro_batch_multiple = info.counts_loss = 1;
    info.outputs = outputs, info.num_outputs = 1;
    info.inputs = inputs, info.num_inputs = 1;
  }

  void forward(const Call&, const hexad_forward_args& args) {
    const std::vector<float> logp = log_softmax(weights(args.which), args.temperature);
    for (int64_t b = 0; b < args.num_batches; ++b) fill(*args.batches[b], logp, HEXAD_F32(args.outputs[b][0].tensor));
  }

  void train(const Call& call, const hexad_train_args& args) {
    std::fill(grad_.begin(), grad_.end(), 0.0f);  // what a call that failed has left
    const std::vector<float> logp = log_softmax(theta_, args.temperature);
    for (int64_t b = 0; b < args.num_batches; ++b) {
      const hexad_batch& batch = *args.batches[b];
      std::vector<float> values(static_cast<size_t>(batch.num_tokens)), grads(values.size());
      fill(batch, logp, values.data());
      DLTensor value_view = view(values, &batch.num_tokens), grad_view = view(grads, &batch.num_tokens);
      const hexad_named_tensor outputs[] = {{"logprobs", &value_view, nullptr, HEXAD_AXIS_TOKEN, 0}};
      DLTensor* const grad_views[] = {&grad_view};
      compute_loss(call, args, b, outputs, grad_views);
      add_gradient(batch, logp, grads, args.temperature);
    }
    if (hexad_comm* dp = call.comm("dp")) {
      DLTensor sum = view(grad_, &vocab_);
      call.check(call.host()->all_reduce(call.raw(), dp, &sum, HEXAD_OP_SUM));
    }
  }

  void step(const Call&, const hexad_step_args& args, hexad_step_stats& stats) {
    double squares = 0;
    for (const float g : grad_) squares += double{g} * g;
    stats.grad_norm = std::sqrt(squares);
    stats.skipped = !std::isfinite(stats.grad_norm);
    if (!stats.skipped && !(args.flags & HEXAD_STEP_DISCARD)) {
      double rate = std::isnan(args.lr) ? default_lr_ : args.lr;
      if (args.max_grad_norm > 0) rate *= std::min(1.0, args.max_grad_norm / (stats.grad_norm + 1e-6));
      for (size_t i = 0; i < theta_.size(); ++i) theta_[i] -= static_cast<float>(rate * grad_[i]);
    }
    std::fill(grad_.begin(), grad_.end(), 0.0f);
  }

  void keep(const Call&, int32_t which) { kept_[which] = theta_; }

  void load(const Call&, const hexad_checkpoint_args& args) {
    if (!(args.what & HEXAD_CHECKPOINT_MODEL)) return;
    const std::filesystem::path file = std::filesystem::path(args.weights_uri) / kFile;
    std::vector<float> read(theta_.size());
    std::ifstream in(file, std::ios::binary);
    in.read(reinterpret_cast<char*>(read.data()), static_cast<std::streamsize>(read.size() * sizeof(float)));
    if (!in || in.peek() != std::ifstream::traits_type::eof())
      fail(HEXAD_INVALID_ARGUMENT, "%s: wanted exactly %zu floats", file.c_str(), read.size());
    (args.which == HEXAD_WEIGHTS_CURRENT ? theta_ : kept_[args.which]) = read;
  }

  void save(const Call& call, const hexad_checkpoint_args& args) {
    hexad_comm* dp = call.comm("dp");
    if (!(args.what & HEXAD_CHECKPOINT_MODEL) || (dp && call.host()->comm_rank(dp) != 0)) return;
    std::filesystem::create_directories(args.weights_uri);
    const std::filesystem::path file = std::filesystem::path(args.weights_uri) / kFile;
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(theta_.data()),
              static_cast<std::streamsize>(theta_.size() * sizeof(float)));
    if (!out.flush()) fail(HEXAD_INTERNAL, "%s: cannot be written", file.c_str());
  }

  void weight_layout(const Call&, hexad_weight_list& out) { list(out, /*with_data=*/false); }
  void weights_begin(const Call&, const hexad_weights_request& request) {
    exported_ = weights(request.which), sent_ = false;
  }
  void weights_next(const Call&, hexad_weight_list& out) {
    out.count = 0;
    if (!std::exchange(sent_, true)) list(out, /*with_data=*/true);
  }
  void weights_end() { exported_.clear(); }

 private:
  static constexpr const char* kFile = "unigram.f32";

  const std::vector<float>& weights(int32_t which) const {
    if (which == HEXAD_WEIGHTS_CURRENT) return theta_;
    if (which == HEXAD_WEIGHTS_GRADIENTS) return grad_;
    const auto found = kept_.find(which);
    if (found == kept_.end()) fail(HEXAD_FAILED_PRECONDITION, "weights %d were never kept", which);
    return found->second;
  }

  static DLTensor view(std::vector<float>& data, const int64_t* size) {
    return {data.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, const_cast<int64_t*>(size), nullptr, 0};
  }

  static std::vector<float> log_softmax(const std::vector<float>& theta, double temperature) {
    double sum = 0;
    for (const float t : theta) sum += std::exp(t / temperature);
    std::vector<float> logp;
    for (const float t : theta) logp.push_back(static_cast<float>(t / temperature - std::log(sum)));
    return logp;
  }

  // Calls visit(position, token) for every token that has a log-prob: all but the first of each sequence.
  template <typename Visit>
  void each_token(const hexad_batch& batch, const Visit& visit) const {
    const int64_t* ids = HEXAD_I64(batch.tensors[0].tensor);
    for (int64_t s = 0; s < batch.num_sequences; ++s) {
      for (int64_t t = batch.cu_seqlens[s] + 1; t < batch.cu_seqlens[s + 1]; ++t) {
        if (ids[t] < 0 || ids[t] >= vocab_)
          fail(HEXAD_INVALID_ARGUMENT, "token %lld is outside of plugin_config.vocab_size %lld",
               static_cast<long long>(ids[t]), static_cast<long long>(vocab_));
        visit(static_cast<size_t>(t), static_cast<size_t>(ids[t]));
      }
    }
  }

  void fill(const hexad_batch& batch, const std::vector<float>& logp, float* out) const {
    std::fill(out, out + batch.num_tokens, 0.0f);
    each_token(batch, [&](size_t t, size_t token) { out[t] = logp[token]; });
  }

  // d logp[token] / d theta = (one_hot(token) - p) / temperature
  void add_gradient(const hexad_batch& batch, const std::vector<float>& logp, const std::vector<float>& grads,
                    double temperature) {
    double total = 0;
    each_token(batch, [&](size_t t, size_t token) {
      grad_[token] += static_cast<float>(grads[t] / temperature);
      total += grads[t];
    });
    for (size_t i = 0; i < grad_.size(); ++i) grad_[i] -= static_cast<float>(total * std::exp(logp[i]) / temperature);
  }

  void list(hexad_weight_list& out, bool with_data) {
    static const int64_t zero = 0;
    exported_view_ = view(exported_, &vocab_);
    slice_ = {"unigram.theta", with_data ? &exported_view_ : nullptr, &vocab_, &zero, &vocab_, 1, {kDLFloat, 32, 1}};
    out.slices = &slice_, out.count = 1;
  }

  int64_t vocab_;
  double default_lr_;
  std::vector<float> theta_, grad_, exported_;
  std::map<int32_t, std::vector<float>> kept_;
  bool sent_ = true;
  DLTensor exported_view_{};
  hexad_weight_slice slice_{};
};

}  // namespace

HEXAD_CPP_BACKEND(Unigram, "unigram", "1.0.0", "Apache-2.0")
