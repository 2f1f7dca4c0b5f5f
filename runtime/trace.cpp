#include "runtime/trace.hpp"

#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>

#include "runtime/error.hpp"
#include "runtime/session.hpp"

namespace hexad::runtime {
namespace {

namespace profiler = torch::autograd::profiler;

std::atomic<bool> tracing = false;

}  // namespace

hexad_code trace_start() {
  return guarded([] { return std::string("trace_start"); },
                 [] {
                   if (tracing) throw Error(HEXAD_FAILED_PRECONDITION, "a trace is being taken already");
                   using torch::profiler::impl::ActivityType;
                   std::set<ActivityType> activities = {ActivityType::CPU};
                   if (session().options.device_type == kDLCUDA) activities.insert(ActivityType::CUDA);
                   const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
                   profiler::prepareProfiler(config, activities);
                   profiler::enableProfiler(
                       config, activities,
                       {at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE, at::RecordScope::BACKWARD_FUNCTION});
                   tracing = true;
                 });
}

hexad_code trace_save(const char* path) {
  return guarded([&] { return "trace_save " + std::string(path); },
                 [&] {
                   if (!tracing) throw Error(HEXAD_FAILED_PRECONDITION, "no trace is being taken: trace_start first");
                   tracing = false;
                   ::unlink(path);  // a link there would be written through
                   profiler::disableProfiler()->save(path);
                 });
}

}  // namespace hexad::runtime
