// How fast the native generator samples on a GPU, beside what the hardware allows; log-probs of what it generated are
// checked against modeling's forward pass in the same run. Random weights, made on the device.
//
//   generate [--model llama-8b] [--precision bfloat16|fp8] [--kv-cache-dtype auto|fp8] [--tests d,a,b] [--running 512]
//            [--rows 8192] [--kv-gb 85] [--block 16] [--batch-invariant 0|1] [--tensor-parallel 1]
//            [--launched UNIX_TIME] [--trace FILE --trace-test a --trace-after 560]
//
// Built by `ninja generate` in a CUDA build. The tests are those of the peer's script for vLLM: a: 64 prompts of 1024
// tokens x 16 samples of 1024; b: 64 prompts of 150-250 x 32, lognormal lengths with mean 595, cut at 4096; d: 8 of
// 128, 512 new tokens each. Temperature 1, no stop, a log-prob of every token. --launched: when this process was
// started, for the time to its first token, weights made and handed over included. --batch-invariant: log-probs must
// have the bits of the forward pass. --tensor-parallel: so many GPUs run one copy of the model; the ceiling is that of
// so many, without what they tell each other. One JSON object a line. Exit code 1 when a check fails.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "benchmarks/generate/ceiling.hpp"
#include "benchmarks/generate/check.hpp"
#include "benchmarks/generate/ranks.hpp"
#include "benchmarks/generate/trace.hpp"
#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "plugins/native/cuda/skinny.hpp"
#include "plugins/native/generator.hpp"

namespace {

using namespace hexad;
using namespace generate;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kRoom = 1.25;
constexpr size_t kCheckedSequences = 4;

struct Options {
  std::string model = "llama-8b", precision = "bfloat16", cache = "auto", tests = "d,a", trace, trace_test = "a";
  int64_t running = 512, rows = 8192, block = 16, trace_after = 500, tensor_parallel = 1;
  double kv_gb = 85;
  std::optional<double> launched;  // seconds since 1970
  bool batch_invariant = false;

  bool fp8() const { return precision == "fp8"; }
  bool fp8_cache() const { return cache != "auto"; }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Bench {
 public:
  Bench(const Options& options, int rank) : options_(options), rank_(rank), call_(context_, "generate") {
    context_.device = {kDLCUDA, rank};
    const auto dir =
        std::filesystem::temp_directory_path() / ("hexad-generate-" + options.model + "-" + std::to_string(rank));
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "config.json") << shapes().at(options.model).dump();
    model_ = modeling::load_model_config(dir);
    const Json section = {{"model_name", dir.string()},
                          {"precision", "bfloat16"},
                          {"max_total_sequence_length", 4608},
                          {"batch_invariant", options.batch_invariant},
                          {"native_cfg",
                           {{"precision", options.precision},
                            {"kv_cache_dtype", options.cache},
                            {"kv_cache_gb", options.kv_gb},
                            {"kv_block_size", options.block},
                            {"max_num_seqs", options.running},
                            {"max_num_batched_tokens", options.rows},
                            {"tensor_parallel_size", options.tensor_parallel}}}};
    config_.emplace("policy.generation", section);
    generator_.emplace(call(), sdk::Config(call(), config_->handle()));
    weights_ = random_weights(model_, at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(rank)));
    c10::cuda::device_synchronize();  // they are read on another stream
    generator_->update_begin(call(), 1);
    for (const auto& [name, weight] : weights_) send(name, weight);
    generator_->update_end(call(), true);
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  const modeling::ModelConfig& model() const { return model_; }
  sdk::Call call() { return {plugin::host_table(native_test::device_runtime()), call_.handle()}; }

  void submit(const Workload& work) {
    std::vector<hexad_request> requests;
    std::vector<const hexad_request*> pointers;
    for (size_t i = 0; i < work.samples.size(); ++i) {
      const std::vector<int32_t>& prompt = work.prompts[work.samples[i].prompt];
      hexad_request request{};
      request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
      request.flags = HEXAD_REQUEST_IGNORE_EOS;
      request.id = i, request.seed = ++seed_;
      request.group = uint64_t(work.samples[i].prompt);
      request.prompt = prompt.data(), request.prompt_size = int64_t(prompt.size());
      request.max_new_tokens = work.samples[i].new_tokens;
      request.temperature = request.top_p = 1;
      requests.push_back(request);
    }
    for (const hexad_request& request : requests) pointers.push_back(&request);
    generator_->flush_cache(call());
    generator_->submit(call(), pointers);
  }

  // Runs it to its end. `finished`: when each sequence ended; `kept`: a few whole sequences, of different prompts.
  Json run(const Workload& work, std::vector<Finished>& kept) {
    const int64_t before = generator_->preemptions();
    const auto start = Clock::now();
    submit(work);
    std::vector<double> ends;
    std::vector<const hexad_completion*> events(256);
    int64_t tokens = 0, prompt_tokens = 0;
    bool sound = true;
    const size_t stride = std::max<size_t>(1, work.samples.size() / kCheckedSequences);
    while (ends.size() < work.samples.size()) {
      const int64_t count = generator_->poll(call(), events, 1000);
      for (int64_t i = 0; i < count; ++i) {
        const hexad_completion& event = *events[i];
        const Sample& sample = work.samples[event.id];
        const std::vector<int32_t>& prompt = work.prompts[sample.prompt];
        ends.push_back(seconds_since(start));
        tokens += event.count, prompt_tokens += int64_t(prompt.size());
        sound = sound && event.finish == HEXAD_FINISH_LENGTH && event.count == sample.new_tokens;
        if (event.error) std::fprintf(stderr, "%s\n", event.error);
        for (int64_t t = 0; t < event.count; ++t)
          sound = sound && event.tokens[t] >= 0 && event.tokens[t] < model_.vocab_size && event.logprobs[t] <= 0;
        if (event.id % stride == 0 && kept.size() < kCheckedSequences)
          kept.push_back(
              {prompt, {event.tokens, event.tokens + event.count}, {event.logprobs, event.logprobs + event.count}});
      }
      generator_->release({events.data(), size_t(count)});
    }
    const double seconds = ends.back();
    const size_t n = ends.size();
    return {{"seqs", n},
            {"prompt_tokens", prompt_tokens},
            {"out_tokens", tokens},
            {"seconds", seconds},
            {"out_tok_s", double(tokens) / seconds},
            {"tok_s_per_seq", double(tokens) / seconds / double(n)},
            {"p50_done_s", ends[n / 2]},
            {"p90_done_s", ends[n * 9 / 10]},
            {"preemptions", generator_->preemptions() - before},
            {"lengths_and_ids", sound}};
  }

  // Random weights magnify rounding, the more the deeper the model: how far bf16 lies from fp32 is told by the training
  // code's own forward pass in bf16, and the generator may lie no farther than a quarter more. In FP8 (weights and what
  // they meet, keys and values, or both) the measure is a pass in fp32 with the casts alone, and bf16's rounding beside
  // them.
  Json check(const std::vector<Finished>& kept, int64_t rows) const {
    const std::vector<float> got = generated_logprobs(kept);
    const std::vector<float> fp32 = forward_logprobs(model_, weights_, at::kFloat, kept);
    const std::vector<float> bf16 = forward_logprobs(model_, weights_, at::kBFloat16, kept, options_.batch_invariant);
    const Agreement ours = agreement(got, fp32), training = agreement(bf16, fp32), both = agreement(got, bf16);
    Json result = {{"generator_to_fp32", json_of(ours)},
                   {"training_bf16_to_fp32", json_of(training)},
                   {"generator_to_training_bf16", json_of(both)}};
    if (options_.fp8() || options_.fp8_cache()) {
      const bool few_rows = rows <= native::cuda::kMostSkinnyRows, cache = options_.fp8_cache();
      const std::vector<float> casts = options_.fp8()
                                           ? fp8_logprobs(model_, weights_, kept, few_rows, cache)
                                           : forward_logprobs(model_, weights_, at::kFloat, kept, false, cache);
      const Agreement alone = agreement(casts, fp32), apart = agreement(got, casts);
      result["casts_in_fp32_to_fp32"] = json_of(alone), result["generator_to_casts_in_fp32"] = json_of(apart);
      result["passed"] = got.size() == fp32.size() && is_fp8(ours, alone, training, apart);
    } else {
      result["passed"] = got.size() == fp32.size() && ours.mean_ratio - 1 < kRoom * (training.mean_ratio - 1) &&
                         ours.largest < 2 * kRoom * training.largest &&
                         (!options_.batch_invariant || both.largest == 0);
    }
    return result;
  }

  // A few passes in the middle of a test, kernel by kernel; then what runs is cancelled.
  Json trace() {
    Workload work = make_workload(options_.trace_test, model_.vocab_size, options_.running, 99);
    submit(work);
    std::vector<const hexad_completion*> events(256);
    const auto passes = [&](int64_t count) {
      const auto start = Clock::now();
      while (count-- > 0) generator_->release({events.data(), size_t(generator_->poll(call(), events, 0))});
      c10::cuda::device_synchronize();
      return seconds_since(start);
    };
    passes(options_.trace_after);
    const double untraced = passes(20);
    traced(rank_ == 0 ? options_.trace : options_.trace + "." + std::to_string(rank_), [&] { passes(10); });
    std::vector<uint64_t> ids;
    for (size_t i = 0; i < work.samples.size(); ++i) ids.push_back(i);
    generator_->cancel(call(), ids);
    for (size_t ended = 0; ended < ids.size();) {
      const int64_t count = generator_->poll(call(), events, 1000);
      ended += size_t(count);
      generator_->release({events.data(), size_t(count)});
    }
    return {{"kind", "trace"},
            {"test", options_.trace_test},
            {"after_passes", options_.trace_after},
            {"ms_per_pass", untraced / 20 * 1e3},
            {"file", options_.trace}};
  }

 private:
  static Json json_of(const Agreement& a) {
    return Json{{"tokens", a.tokens}, {"largest", a.largest}, {"token_mult_prob_error", a.mean_ratio}};
  }

  // No farther from fp32 than casts and rounding together, independent of each other, and a quarter; nor from the pass
  // with the same casts than that is from fp32, and a quarter; and not so near to fp32 that nothing can have been cast.
  static bool is_fp8(const Agreement& ours, const Agreement& casts, const Agreement& rounding, const Agreement& apart) {
    const double error = ours.mean_ratio - 1, cast = casts.mean_ratio - 1;
    return error < kRoom * std::hypot(cast, rounding.mean_ratio - 1) && error > cast / kRoom / kRoom &&
           apart.mean_ratio - 1 < kRoom * cast;
  }

  void send(const std::string& name, const at::Tensor& weight) {
    const std::vector<int64_t> shape = weight.sizes().vec(), zeros(shape.size(), 0);
    std::vector<int64_t> extents = shape;
    DLTensor view{
        weight.data_ptr(), {kDLCUDA, rank_}, int32_t(shape.size()), {kDLBfloat, 16, 1}, extents.data(), nullptr, 0};
    const hexad_weight_slice slice{name.c_str(), &view,     shape.data(), zeros.data(),
                                   shape.data(), view.ndim, view.dtype};
    const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
    generator_->update_bucket(call(), bucket);
  }

  Options options_;
  int rank_;  // of those that share the model
  plugin::CallContext context_;
  plugin::Call call_;
  modeling::ModelConfig model_;
  std::optional<plugin::PluginConfig> config_;
  std::optional<native::Generator> generator_;
  Weights weights_;
  uint64_t seed_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--model")
      options.model = value;
    else if (key == "--precision")
      options.precision = value;
    else if (key == "--kv-cache-dtype")
      options.cache = value;
    else if (key == "--launched")
      options.launched = std::stod(value);
    else if (key == "--tests")
      options.tests = value;
    else if (key == "--trace")
      options.trace = value;
    else if (key == "--trace-test")
      options.trace_test = value;
    else if (key == "--block")
      options.block = std::stoll(value);
    else if (key == "--trace-after")
      options.trace_after = std::stoll(value);
    else if (key == "--running")
      options.running = std::stoll(value);
    else if (key == "--rows")
      options.rows = std::stoll(value);
    else if (key == "--batch-invariant")
      options.batch_invariant = value == "1";
    else if (key == "--tensor-parallel")
      options.tensor_parallel = std::stoll(value);
    else if (key == "--kv-gb")
      options.kv_gb = std::stod(value);
    else
      std::fprintf(stderr, "unknown option %s\n", key.c_str()), std::exit(2);
  }
  if (!shapes().contains(options.model))
    std::fprintf(stderr, "unknown model %s\n", options.model.c_str()), std::exit(2);
  return options;
}

void print(const Json& line) {
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto start = Clock::now();
  const Ranks ranks(int(options.tensor_parallel), argv);
  Bench bench(options, ranks.rank());
  std::vector<Finished> ignored;
  Workload first = make_workload("d", bench.model().vocab_size, options.running, 1);
  first.samples.resize(1);
  first.samples[0].new_tokens = 1;
  bench.run(first, ignored);
  Json engine = {{"kind", "engine"},
                 {"model", options.model},
                 {"precision", options.precision},
                 {"kv_cache_dtype", options.cache},
                 {"running", options.running},
                 {"rows", options.rows},
                 {"kv_gb", options.kv_gb},
                 {"batch_invariant", options.batch_invariant},
                 {"tensor_parallel", options.tensor_parallel},
                 {"first_token_s", seconds_since(start)}};
  if (options.launched) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    engine["start_to_first_token_s"] = now.count() - *options.launched;
  }
  print(engine);
  bench.run(make_workload("w", bench.model().vocab_size, options.running, 2), ignored);
  bool passed = true;
  uint64_t seed = 10;
  std::stringstream names(options.tests);
  for (std::string name; std::getline(names, name, ',');) {
    const Workload work = make_workload(name, bench.model().vocab_size, options.running, ++seed);
    std::vector<Finished> kept;
    Json line = bench.run(work, kept);
    if (ranks.rank() != 0) continue;  // they draw what rank 0 draws
    const double gpus = ranks.count();
    const Ceiling ceiling = ceiling_of(bench.model(), work, options.running, options.fp8(), options.fp8_cache());
    line["kind"] = name, line["model"] = options.model, line["running"] = options.running;
    line["precision"] = options.precision, line["kv_cache_dtype"] = options.cache;
    line["tensor_parallel"] = options.tensor_parallel;
    line["ceiling"] = {{"cascade", gpus * ceiling.cascade}, {"plain", gpus * ceiling.plain}};
    line["of_ceiling"] = line["out_tok_s"].get<double>() / (gpus * ceiling.cascade);
    line["check"] = bench.check(kept, std::min<int64_t>(options.running, int64_t(work.samples.size())));
    passed = passed && line["lengths_and_ids"] && line["check"]["passed"];
    print(line);
  }
  if (!options.trace.empty()) print(bench.trace());
  return passed ? 0 : 1;
}
