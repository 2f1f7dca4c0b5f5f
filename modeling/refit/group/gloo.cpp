#include "modeling/refit/group/gloo.hpp"

#include <ATen/Functions.h>
#include <bit>
#include <hexad/services.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <thread>
#include <utility>
#include <vector>

#include "modeling/refit/group/patient_store.hpp"
#include "modeling/refit/group/tcp.hpp"

namespace hexad::refit {
namespace {

// The first line: c10d adds where in its source it was, and a stack.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

struct GlooGroup::Group {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  c10::intrusive_ptr<c10d::Work> message;
};

// The three prefixes are those of torch.distributed: init_custom_process_group of the engines gives its store the
// group's name, and _new_process_group_helper adds it again, and then the first device that gloo is for.
GlooGroup::GlooGroup(const Store& store, const Place& place, GiveUp give_up) : group_(std::make_unique<Group>()) {
  try {
    c10::intrusive_ptr<c10d::Store> prefixed = store.tcp().store;
    for (const std::string& prefix : {place.name, place.name + "/", std::string("cpu/")})
      prefixed = c10::make_intrusive<c10d::PrefixStore>(prefix, prefixed);
    group_->store = c10::make_intrusive<PatientStore>(prefixed, std::move(give_up));
    auto options = c10d::ProcessGroupGloo::Options::create(place.patience);
    options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname(place.address)};
    group_->gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(group_->store, place.rank, place.ranks, options);
  } catch (const sdk::Error&) {
    throw;
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update by gloo: the group was not made: %s", first_line(error).c_str());
  }
}

GlooGroup::~GlooGroup() = default;

void GlooGroup::broadcast(uintptr_t data, size_t bytes, const GiveUp&) {
  try {
    std::vector<at::Tensor> tensors = {
        at::from_blob(std::bit_cast<void*>(data), {static_cast<int64_t>(bytes)}, at::TensorOptions(at::kByte))};
    group_->message = group_->gloo->broadcast(tensors);
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update by gloo: %s", first_line(error).c_str());
  }
}

void GlooGroup::wait(const GiveUp& give_up) {
  while (!group_->message->isCompleted()) {
    if (const std::string why = give_up(); !why.empty())
      sdk::fail(HEXAD_UNAVAILABLE, "weight update by gloo: the broadcast did not end: %s", why.c_str());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  try {
    group_->message->wait();
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update by gloo: the broadcast broke off: %s", first_line(error).c_str());
  }
}

}  // namespace hexad::refit
