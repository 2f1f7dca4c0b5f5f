// Times of kernels by CUPTI, also inside CUDA graphs: a Chrome trace.
#pragma once
#include <torch/csrc/autograd/profiler_kineto.h>

#include <string>

namespace generate {

template <typename Work>
void traced(const std::string& file, const Work& work) {
  using namespace torch::profiler::impl;
  const std::set<ActivityType> activities = {ActivityType::CUDA};
  const ProfilerConfig config(ProfilerState::KINETO);
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  work();
  torch::autograd::profiler::disableProfiler()->save(file);
}

}  // namespace generate
