#include <algorithm>
#include <chrono>
#include <cmath>

#include "sdk/verify/cuda/device.hpp"
#include "sdk/verify/guarded.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"
#include "sdk/verify/case/loss_case.hpp"
#include "sdk/verify/overlay_host.hpp"

namespace hexad::verify {
namespace {

constexpr double kGateSeconds = 1;  // that a slow kernel runs if compute waits for it
constexpr int kCalls = 5000, kCycles = 200;
constexpr auto kPatience = std::chrono::seconds(20);
constexpr size_t kLeak = size_t{1} << 20;  // the driver takes memory in pieces of 2 MiB
constexpr double kHostDevice = 1e-5;       // relative, of f32 sums in another order
const std::vector<int64_t> kLengths = {7, 12, 1, 33};

bool near(double a, double b, double scale) { return std::abs(a - b) <= kHostDevice * std::max(scale, 1e-6); }

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  double scale = 0;
  for (float value : a) scale = std::max(scale, std::abs(static_cast<double>(value)));
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](float x, float y) { return near(x, y, scale); });
}

bool near(const LossResult& a, const LossResult& b) {
  bool good = near(a.loss, b.loss, std::abs(a.loss)) && a.grads.size() == b.grads.size();
  for (size_t g = 0; good && g < a.grads.size(); ++g) good = near(a.grads[g], b.grads[g]);
  for (size_t m = 0; good && m < a.metrics.size(); ++m) good = near(a.metrics[m], b.metrics[m], std::abs(a.metrics[m]));
  return good;
}

// One loss under test on the device.
class Bench {
 public:
  Bench(const Subject& subject, void* self, Findings& findings)
      : subject_(subject), self_(self), findings_(findings), use_(plan_of(subject, self, nullptr)) {}

  // An ordinary call, which has the code of all kernels loaded too. The others are compared with it.
  bool check_ordinary() {
    expected_ = compute(subject_, self_, batch_, use_);
    const bool good = findings_.expect(expected_.code == HEXAD_OK, "compute", "it failed: " + expected_.text);
    findings_.expect(expected_.damage.empty(), "canary", "it wrote " + expected_.damage);
    findings_.expect(subject_.cuda->is_current(), "current context",
                     "after compute another CUDA context, or none, is current than before");
    subject_.cuda->make_current();
    return good;
  }

  // The inputs become ready, and the outputs zero, once a slow kernel has ended.
  void check_order() {
    LossCall call(subject_, batch_, use_);
    const std::vector<GuardedTensor*> tensors = call.tensors();
    std::vector<void*> ready;
    for (GuardedTensor* tensor : tensors) {
      Guarded& memory = tensor->memory();
      device().upload(ready.emplace_back(device().allocate(memory.image_size())), memory.image(), memory.image_size());
      device().fill(memory.block(), 0xFF, memory.image_size());  // NaN
    }
    device().synchronize();
    device().close_gate(kGateSeconds);
    for (size_t i = 0; i < tensors.size(); ++i)
      device().copy(tensors[i]->memory().block(), ready[i], tensors[i]->memory().image_size());
    LossResult result = call.run(self_);
    const bool returned = device().busy();
    device().open_gate();
    device().synchronize();
    call.fetch(result);
    for (void* block : ready) device().release(block);
    findings_.expect(result.code == HEXAD_OK, "stream order", "compute failed: " + result.text);
    findings_.expect(returned, "synchronises",
                     "compute returned only after the work that stood before it on the call's stream was done: it "
                     "waits for the device, or allocates or frees with CUDA");
    expect_same(result, "stream order",
                "a slow kernel wrote the inputs on the call's stream, and the result is another one than of inputs "
                "that were there: enqueue on host->stream and nowhere else");
  }

  // While a blocking stream is captured in global mode, CUDA refuses what waits for the device: waiting, allocating and
  // freeing, the legacy default stream.
  void check_bystander() {
    LossCall call(subject_, batch_, use_);
    call.upload();
    LossResult result;
    const std::string problem = device().capture([&] { result = call.run(self_); }, /*own_stream=*/false);
    findings_.expect(problem.empty() && result.code == HEXAD_OK, "unsafe call",
                     "compute did what is not allowed while another stream is captured (" +
                         (problem.empty() ? result.text : problem) +
                         "): it waits for the device, allocates or frees with CUDA where host->alloc is, or uses the "
                         "legacy default stream, as cudaMemcpy does");
    if (!problem.empty() || result.code != HEXAD_OK) return;
    call.fetch(result);
    expect_same(result, "unsafe call", "the result is another one while another stream is captured");
  }

  // Once captured, it computes whatever lies in its tensors.
  void check_capture() {
    if (!(subject_.desc->loss->caps & HEXAD_CAP_CAPTURABLE)) return;
    LossCall call(subject_, batch_, use_);
    LossResult result;
    device().synchronize();
    const CallOptions capturing = {nullptr, HEXAD_CALL_CAPTURING};
    const std::string problem = device().capture([&] { result = call.run(self_, capturing); }, /*own_stream=*/true);
    const std::string driver = problem.empty() ? "" : " (" + problem + ")";
    findings_.expect(
        result.code == HEXAD_OK, "capture",
        "compute fails under HEXAD_CALL_CAPTURING, which HEXAD_CAP_CAPTURABLE promises" + driver + ": " + result.text);
    findings_.expect(problem.empty(), "capture",
                     "compute breaks the capture of its stream" + driver +
                         ": nothing may wait, allocate with CUDA or work on another stream");
    if (!problem.empty() || result.code != HEXAD_OK) return;
    const char* differs =
        "the replayed graph gives another result than the call: was it work on another stream, or "
        "did compute read device memory while it was captured?";
    call.upload();
    device().replay();
    call.fetch(result);
    expect_same(result, "capture", differs);
    LossCase other = make_case(*subject_.desc->loss, kLengths, 202);
    other.valid_tokens = batch_.valid_tokens;
    other.valid_sequences = batch_.valid_sequences;
    replace(call, other);
    device().replay();
    call.fetch(result);
    const LossResult wanted = compute(subject_, self_, other, use_);
    findings_.expect(same(result, wanted), "capture", differs);
  }

  // Device memory in use stays the same over many calls.
  void check_flat_calls() {
    LossCall call(subject_, batch_, use_);
    expect_flat(kCalls, "compute", [&] {
      call.upload();
      call.run(self_);
    });
  }

  void check_host_path() {
    if (!(subject_.desc->loss->caps & HEXAD_CAP_HOST_MEM)) return;
    Subject host = subject_;
    host.cuda = nullptr;
    const LossResult result = compute(host, self_, batch_, use_);
    findings_.expect(result.code == HEXAD_OK, "host and device", "compute in host memory failed: " + result.text);
    findings_.expect(near(result, expected_), "host and device",
                     "the loss is " + std::to_string(result.loss) + " in host memory and " +
                         std::to_string(expected_.loss) + " in CUDA memory, or gradients or metrics differ as much");
  }

  // Each service of the host fails once; neither that nor the next call may harm the context.
  void check_after_errors(OverlayHost& host) {
    for (int n = 1; n <= 100; ++n) {
      host.fail_at(n);
      compute(subject_, self_, batch_, use_);
      const bool tripped = host.tripped();
      host.fail_at(0);
      if (!tripped) return;
      device().synchronize();
      expect_same(compute(subject_, self_, batch_, use_), "usable after an error",
                  "after a call whose service " + std::to_string(n) + " failed, the next one gives another result");
    }
  }

  template <typename Work>
  void expect_flat(int rounds, const std::string& what, Work&& work) {
    for (int warm = 0; warm < 10; ++warm) work();
    size_t growth = 0;
    int made = 0;
    for (int again = 0; again < 2; ++again) {  // twice: somebody else may use the GPU
      const auto end = std::chrono::steady_clock::now() + kPatience;
      device().synchronize();
      const size_t before = device().bytes_in_use();
      for (made = 0; made < rounds && std::chrono::steady_clock::now() < end; ++made) work();
      device().synchronize();
      const size_t after = device().bytes_in_use();
      growth = after > before ? after - before : 0;
      if (growth < kLeak) break;
    }
    findings_.expect(growth < kLeak, "device memory",
                     std::to_string(made) + " times " + what + " left " + std::to_string(growth >> 20) +
                         " MiB of device memory in use");
  }

 private:
  CudaDevice& device() const { return *subject_.cuda; }
  bool same(const LossResult& a, const LossResult& b) const {
    return repeatable(subject_) ? a.bits() == b.bits() : near(a, b);
  }
  void expect_same(const LossResult& result, const std::string& check, const std::string& text) {
    findings_.expect(same(result, expected_), check, text);
  }
  // The tensors of `call` take the values that they have for `batch`.
  void replace(LossCall& call, const LossCase& batch) const {
    const LossCall other(subject_, batch, use_);
    const std::vector<GuardedTensor*> from = other.tensors(), to = call.tensors();
    for (size_t i = 0; i < to.size(); ++i)
      std::memcpy(to[i]->memory().image(), from[i]->memory().image(), to[i]->memory().image_size());
    call.upload();
  }

  const Subject& subject_;
  void* self_;
  Findings& findings_;
  LossUse use_;
  LossCase batch_ = make_case(*subject_.desc->loss, kLengths, 201);
  LossResult expected_;
};

void check_life(const Subject& subject, Findings& findings) {
  {
    const Instance instance(subject, subject.engine->host());
    findings.expect(subject.cuda->is_current(), "current context",
                    "after create another CUDA context, or none, is current than before");
  }
  findings.expect(subject.cuda->is_current(), "current context",
                  "after destroy another CUDA context, or none, is current than before");
  subject.cuda->make_current();
}

}  // namespace

void check_cuda(const Subject& subject, Findings& findings) {
  if (!findings.expect(subject.desc->loss->caps & HEXAD_CAP_CUDA_MEM, "memory",
                       "the manifest says that it takes CUDA memory, and its caps do not"))
    return;
  check_life(subject, findings);
  OverlayHost host(subject.engine->host());
  const Instance instance(subject, host.table());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  Bench bench(subject, instance.self(), findings);
  if (!bench.check_ordinary()) return;
  bench.check_order();
  bench.check_bystander();
  bench.check_capture();
  bench.check_host_path();
  bench.check_after_errors(host);
  bench.check_flat_calls();
  bench.expect_flat(kCycles, "create, compute and destroy", [&] {
    const Instance one(subject, host.table());
    Bench(subject, one.self(), findings).check_ordinary();
  });
  if (subject.desc->loss->caps & HEXAD_CAP_HOST_MEM) check_loss(subject, findings);
}

}  // namespace hexad::verify
