#include "core/plugin/host/table.hpp"

#include <atomic>
#include <thread>

#include "core/plugin/call.hpp"
#include "tests/plugin/fake_runtime.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

TEST_CASE("every service of the table is there, with and without a runtime") {
  for (const hexad_runtime* runtime : {static_cast<const hexad_runtime*>(nullptr), &fake_runtime()}) {
    const hexad_host* host = host_table(runtime);
    CHECK(host == host_table(runtime));
    CHECK(runtime_of(host) == runtime);
    CHECK(host->struct_size == HEXAD_STRUCT_SIZE(hexad_host, extension));
    // All fields from set_error on are function pointers.
    const auto* fields = reinterpret_cast<void* const*>(&host->set_error);
    const auto* end = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(host) + host->struct_size);
    for (const auto* field = fields; field < end; ++field)
      CHECK_MESSAGE(*field != nullptr, "service " << field - fields);
  }
  const hexad_runtime other = fake_runtime();
  CHECK(error_of([&] { host_table(&other); }) == "a process has one runtime; a second one was given");
}

TEST_CASE("the first error of a call wins, from any thread") {
  const hexad_host* host = host_table(nullptr);
  const CallContext context;
  Call call(context, "loss 'toy'");
  CHECK(host->set_error(call.handle(), HEXAD_INTERNAL, "first half|second", 10) == HEXAD_INTERNAL);
  CHECK(host->set_error(call.handle(), HEXAD_UNAVAILABLE, "later", UINT64_MAX) == HEXAD_UNAVAILABLE);
  CHECK(call.error_code() == HEXAD_INTERNAL);
  CHECK(call.error_text() == "first half");
  Call raced(context, "loss 'toy'");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { host->set_error(raced.handle(), i + 1, std::to_string(i + 1).c_str(), UINT64_MAX); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(raced.error_text() == std::to_string(raced.error_code()));
}

TEST_CASE("a call carries step, flags, deadline, cancellation, device, metrics and the tokenizer") {
  const hexad_host* host = host_table(nullptr);
  std::atomic<bool> cancelled = false;
  std::vector<Metric> metrics;
  CallContext context;
  context.step = 812;
  context.flags = HEXAD_CALL_DETERMINISTIC;
  context.deadline_ns = 99;
  context.cancelled = &cancelled;
  context.device = {kDLCUDA, 3};
  context.metric = [&](const Metric& metric) { metrics.push_back(metric); };
  context.detokenize = [](std::span<const int32_t> ids) { return std::string(ids.size(), 'x'); };
  Call call(context, "loss 'toy'");
  CHECK(host->step(call.handle()) == 812);
  CHECK(host->flags(call.handle()) == HEXAD_CALL_DETERMINISTIC);
  CHECK(host->deadline_ns(call.handle()) == 99);
  CHECK(host->cancelled(call.handle()) == 0);
  cancelled = true;
  CHECK(host->cancelled(call.handle()) == 1);
  int32_t type = 0, id = 0;
  host->device(call.handle(), &type, &id);
  CHECK(type == kDLCUDA);
  CHECK(id == 3);
  CHECK(host->metric(call.handle(), "m", 2, 4, HEXAD_REDUCE_MEAN) == HEXAD_OK);
  CHECK(host->metric(call.handle(), "m", 2, 4, 77) == HEXAD_INVALID_ARGUMENT);
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].weight == 4);
  const int32_t ids[] = {1, 2, 3};
  char text[4] = "abc";
  uint64_t size = 2;
  CHECK(host->detokenize(call.handle(), ids, 3, text, &size) == HEXAD_OK);
  CHECK(size == 3);
  CHECK(std::string(text) == "abc");
  CHECK(host->detokenize(call.handle(), ids, 3, text, &size) == HEXAD_OK);
  CHECK(std::string(text) == "xxx");

  const CallContext bare;
  Call plain(bare, "x");
  CHECK(host->metric(plain.handle(), "m", 1, 1, HEXAD_REDUCE_SUM) == HEXAD_UNIMPLEMENTED);
  CHECK(host->detokenize(plain.handle(), ids, 3, text, &size) == HEXAD_UNIMPLEMENTED);
}

TEST_CASE("without a runtime memory is the host's and there are no groups") {
  const hexad_host* host = host_table(nullptr);
  const CallContext context;
  Call call(context, "x");
  void* memory = nullptr;
  CHECK(host->alloc(call.handle(), kDLCPU, 0, 100, &memory) == HEXAD_OK);
  CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
  host->free(memory, kDLCPU, 0);
  host->free(nullptr, kDLCPU, 0);
  CHECK(host->alloc(call.handle(), kDLCUDA, 0, 100, &memory) == HEXAD_FAILED_PRECONDITION);
  CHECK(call.error_text() == "this process has no device but the CPU");
  Call second(context, "x");
  CHECK(host->alloc(second.handle(), kDLCPU, 0, UINT64_MAX, &memory) == HEXAD_RESOURCE_EXHAUSTED);

  int64_t shape[] = {2, 3};
  const DLTensor prototype{nullptr, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLManagedTensorVersioned* tensor = nullptr;
  CHECK(host->tensor_new(call.handle(), &prototype, &tensor) == HEXAD_OK);
  CHECK(tensor->dl_tensor.strides[0] == 3);
  CHECK(tensor->dl_tensor.strides[1] == 1);
  tensor->deleter(tensor);

  hexad_comm* comm = reinterpret_cast<hexad_comm*>(1);
  CHECK(host->comm_axis(call.handle(), "dp", &comm) == HEXAD_OK);
  CHECK(comm == nullptr);
  CHECK(host->barrier(call.handle(), nullptr) == HEXAD_FAILED_PRECONDITION);
}

TEST_CASE("through a runtime, failures carry its text and values live as long as the call") {
  const hexad_host* host = host_table(&fake_runtime());
  const CallContext context;
  Call call(context, "x");
  void* memory = nullptr;
  CHECK(host->alloc(call.handle(), kDLCUDA, 0, 100, &memory) == HEXAD_RESOURCE_EXHAUSTED);
  CHECK(call.error_text() == "the fake device is on fire");
  const void *first = nullptr, *second = nullptr;
  uint64_t size = 0;
  CHECK(host->kv_get(call.handle(), "a", 0, &first, &size) == HEXAD_OK);
  CHECK(host->kv_get(call.handle(), "b", 0, &second, &size) == HEXAD_OK);
  CHECK(std::string(static_cast<const char*>(first), size) == "value of a");
  CHECK(std::string(static_cast<const char*>(second), size) == "value of b");
}
