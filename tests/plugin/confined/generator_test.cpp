// A generator in a process of its own.
#include <chrono>
#include <map>
#include <thread>

#include "tests/plugin/confined/confined.hpp"

using namespace confined_test;

namespace {

PluginConfig generation() { return PluginConfig("policy.generation", Json::object()); }

const LoadedPlugin& generator_plugin(bool confined) {
  static const LoadedPlugin& own = plugins().load(Kind::generator, kGenerator, true);
  static const LoadedPlugin& here = plugins().again(Kind::generator, own.manifest.name, false);
  return confined ? own : here;
}

// Requests and all that they point to.
struct Requests {
  explicit Requests(int count) {
    for (int i = 0; i < count; ++i) {
      auto& prompt = prompts.emplace_back();
      for (int t = 0; t <= i; ++t) prompt.push_back(10 * i + t);
      hexad_request request{};
      request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
      request.id = static_cast<uint64_t>(i);
      request.prompt = prompt.data();
      request.prompt_size = static_cast<int64_t>(prompt.size());
      request.max_new_tokens = 5;
      request.temperature = 0.25;
      request.stop_token_ids = stop_ids;
      request.num_stop_token_ids = 2;
      request.stop_strings = stop_strings;
      request.num_stop_strings = 2;
      requests.push_back(request);
    }
    for (const hexad_request& request : requests) pointers.push_back(&request);
  }
  std::deque<std::vector<int32_t>> prompts;
  const int32_t stop_ids[2] = {7, 8};
  const char* stop_strings[2] = {"a b", ""};
  std::vector<hexad_request> requests;
  std::vector<const hexad_request*> pointers;
};

CallContext context_with_tokenizer() {
  CallContext context;
  context.detokenize = [](std::span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) text += fmt::format("<{}>", id);
    return text;
  };
  return context;
}

// All that the host sees of one run, as text.
std::string transcript(const LoadedPlugin& plugin) {
  const CallContext context = context_with_tokenizer();
  GeneratorPlugin generator(plugin, {}, generation());
  const hexad_generator_info& info = generator.info();
  std::string seen = fmt::format("{} {} {}\n", info.max_sequences, info.caps, info.weight_form);
  for (const hexad_weight_slice& slice : generator.weight_layout({})) {
    seen += fmt::format("{} {}d {}", slice.name, slice.ndim, static_cast<int>(slice.dtype.bits));
    for (int32_t d = 0; d < slice.ndim; ++d)
      seen += fmt::format(" {}+{}/{}", slice.offsets[d], slice.shape[d], slice.global_shape[d]);
    seen += '\n';
  }
  std::vector<float> weights{1, 0.5f, -2, 0.1f, 3, 4};
  std::vector<int64_t> global{4, 3}, offsets{2, 0}, shape{2, 3};
  DLTensor tensor{weights.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  const hexad_weight_slice slice{"w", &tensor, global.data(), offsets.data(), shape.data(), 2, {kDLFloat, 32, 1}};
  hexad_weight_list bucket{};
  bucket.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  bucket.slices = &slice, bucket.count = 1;
  generator.update_begin({}, 41);
  generator.update_bucket({}, bucket);
  generator.update_end({}, true);
  const Requests requests(9);
  generator.submit(context, requests.pointers);
  const std::vector<uint64_t> cancelled{2, 4};
  generator.cancel({}, cancelled);
  std::map<uint64_t, std::string> events;
  while (events.size() < 9) {
    generator.poll({}, 4, 100, [&](const hexad_completion& event) {
      std::string& line = events[event.id];
      line = fmt::format("{} {} v{}", event.finish, event.error ? event.error : "", event.spans[0].version);
      for (int64_t i = 0; HEXAD_HAS(&event, num_columns) && i < event.num_columns; ++i) {
        const DLTensor& column = *event.columns[i].tensor;
        line += fmt::format(" {} {} {}d of {} bits:", event.columns[i].name, event.columns[i].axis, column.ndim,
                            int{column.dtype.bits});
        for (int64_t k = 0; k < column.shape[0] * 2; ++k) line += fmt::format(" {}", HEXAD_DATA(int16_t, &column)[k]);
      }
      for (int64_t t = 0; t < event.count; ++t) line += fmt::format(" {}:{}", event.tokens[t], event.logprobs[t]);
    });
  }
  for (const auto& [id, line] : events) seen += fmt::format("{} {}\n", id, line);
  return seen;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a confined generator says the same as in process: layout, refit, completions, texts") {
  const std::string own = transcript(generator_plugin(true));
  CHECK(own == transcript(generator_plugin(false)));
  CHECK(contains(own, "7 4 1\nw 2d 32 2+2/4 0+3/3\nscalar 0d 64\n"));
  CHECK(contains(own, "\n1 4 <10><11>|a b||7|8|0.25 v41 routed_experts 1 3d of 16 bits: -1 0 1 2 3 -1 0 1 11:1 10:"));
  CHECK(contains(own, "\n2 3  v41 routed_experts 1 3d of 16 bits: -1 0 1 2 3 -1 0 1 2 3 -1 0 22:1"));
  CHECK(contains(own, "\n3 4 "));
  CHECK(contains(own, " v41 33:1"));  // without a column
}

TEST_CASE("optional functions are there or not as in the plugin") {
  const hexad_generator_vtable& vtable = *generator_plugin(true).desc->generator;
  CHECK(bool(vtable.pause));
  CHECK_FALSE(bool(vtable.resume));
  CHECK_FALSE(bool(vtable.flush_cache));
  GeneratorPlugin generator(generator_plugin(true), {}, generation());
  generator.pause({});
  generator.sleep({}, 2);
  std::vector<Metric> metrics;
  CallContext context;
  context.metric = [&](const Metric& metric) { metrics.push_back(metric); };
  generator.wake(context);
  CHECK(metrics.size() == 1);
  generator.sleep({}, 1);
  CHECK(contains(error_of([&] { generator.wake({}); }), "wake at step 0: FAILED_PRECONDITION: awake"));
}

TEST_CASE("a poll that waits blocks neither submit nor cancel") {
  GeneratorPlugin generator(generator_plugin(true), {}, generation());
  std::atomic<int64_t> polled = 0;
  std::thread poller([&] { polled = generator.poll({}, 16, 15'000, [](const hexad_completion&) {}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto began = std::chrono::steady_clock::now();
  const Requests requests(3);
  generator.submit(context_with_tokenizer(), requests.pointers);
  generator.cancel({}, std::vector<uint64_t>{99});
  poller.join();
  CHECK(polled == 3);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
}

TEST_CASE("a run without a tokenizer is told so, as in process") {
  for (const bool confined : {true, false}) {
    GeneratorPlugin generator(generator_plugin(confined), {}, generation());
    const Requests requests(2);
    CHECK(contains(error_of([&] { generator.submit({}, requests.pointers); }),
                   "submit at step 0: UNIMPLEMENTED: this run has no tokenizer"));
  }
}

TEST_CASE("a generator that takes no host memory stays in process") {
  const LoadedPlugin& plugin = generator_plugin(false);
  const fs::path library = plugin.path;
  const PluginFolder folder;
  fs::copy_file(library, folder.path() / library.filename());
  folder.write_manifest(folder.path() / library.filename(), plugin.manifest.name,
                        {{"kind", "generator"}, {"memory", {"cuda"}}});
  Options options;
  options.paths = {folder.path()};
  options.program = program();
  options.own_process = {plugin.manifest.name};
  CHECK(contains(error_of([&] { Registry(options, nullptr).load(Kind::generator, plugin.manifest.name); }),
                 "takes CUDA memory alone (its manifest says so), and a process of its own has host memory only"));
}

TEST_SUITE_END();
