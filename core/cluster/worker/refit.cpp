// Commands of a refit between ranks: layouts out, the plan in, and the exchange itself.
#include <chrono>
#include <exception>
#include <limits>

#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

using Clock = std::chrono::steady_clock;

void check(const WorkerState& state, hexad_code code) {
  if (code != HEXAD_OK) throw plugin::PluginError(code, fmt::format("refit: {}", state.runtime->error()));
}

Layout layout_of(std::span<const hexad_weight_slice> slices) {
  Layout layout;
  for (const hexad_weight_slice& slice : slices) {
    const auto list = [&](const int64_t* numbers) { return std::vector<int64_t>(numbers, numbers + slice.ndim); };
    layout.push_back({slice.name,
                      list(slice.global_shape),
                      {list(slice.offsets), list(slice.shape)},
                      slice.dtype.code,
                      slice.dtype.bits});
  }
  return layout;
}

// A box of a slice's tensor, seen where it lies.
struct BoxView {
  DLTensor tensor{};
  std::vector<int64_t> shape, strides;
};

std::unique_ptr<BoxView> view_of(const DLTensor& whole, const std::vector<int64_t>& offsets, const Box& box) {
  auto view = std::make_unique<BoxView>();
  view->shape = box.shape;
  view->strides.resize(box.shape.size());
  int64_t stride = 1, first = 0;
  for (size_t d = box.shape.size(); d-- > 0;) {
    view->strides[d] = whole.strides ? whole.strides[d] : stride;
    stride *= whole.shape[d];
    first += (box.offsets[d] - offsets[d]) * view->strides[d];
  }
  view->tensor = whole;
  view->tensor.shape = view->shape.data();
  view->tensor.strides = view->strides.data();
  view->tensor.byte_offset += static_cast<uint64_t>(first) * whole.dtype.bits / 8;
  return view;
}

struct Transfers {
  std::vector<std::unique_ptr<BoxView>> views;
  std::vector<hexad_transfer> list;

  void add(std::unique_ptr<BoxView> view, int peer) {
    list.push_back({&view->tensor, peer, 0});
    views.push_back(std::move(view));
  }
};

void exchange(const WorkerState& state, const Transfers& sends, const Transfers& receives) {
  if (sends.list.empty() && receives.list.empty()) return;
  check(state, state.runtime->exchange(state.refit_group, sends.list.data(), static_cast<int64_t>(sends.list.size()),
                                       receives.list.data(), static_cast<int64_t>(receives.list.size())));
}

bool contains(const hexad_weight_slice& slice, const Box& box) {
  for (size_t d = 0; d < box.shape.size(); ++d) {
    if (box.offsets[d] < slice.offsets[d] || box.offsets[d] + box.shape[d] > slice.offsets[d] + slice.shape[d])
      return false;
  }
  return true;
}

const hexad_weight_slice& slice_with(const hexad_weight_list& list, const RefitPart::Send& send) {
  for (int64_t i = 0; i < list.count; ++i)
    if (send.weight == list.slices[i].name && contains(list.slices[i], send.box)) return list.slices[i];
  fail(ErrorKind::plugin, "refit: the backend's layout has weight '{}', which it does not hand out", send.weight);
}

void send_all(WorkerState& state) {
  bool sent = false;
  const auto send = [&](const hexad_weight_list& list) {
    if (std::exchange(sent, true))
      fail(ErrorKind::plugin,
           "{} handed out its slices in several buckets; wanted one, as max_bucket_bytes has no bound",
           state.backend->plugin().label());
    std::map<std::string, const hexad_weight_slice*> last;
    for (const RefitPart::Step& step : state.refit->steps) {
      Transfers sends;
      for (const RefitPart::Send& piece : step.sends) {
        const hexad_weight_slice*& slice = last[piece.weight];
        if (!slice || !contains(*slice, piece.box)) slice = &slice_with(list, piece);
        const std::vector<int64_t> offsets(slice->offsets, slice->offsets + slice->ndim);
        sends.add(view_of(*slice->tensor, offsets, piece.box), piece.to);
      }
      exchange(state, sends, {});
    }
  };
  state.backend->export_weights(state.context(), HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_SHARD,
                                std::numeric_limits<int64_t>::max(), send);
}

// Memory of the device for the slices of a step, in stream order.
class Bucket {
 public:
  Bucket(const WorkerState& state, const RefitPart::Step& step) : state_(state) {
    for (const RefitPart::Receive& piece : step.receives)
      if (!places_.contains(piece.slice)) add(piece.slice);
    for (const RefitPart::Receive& piece : step.receives) {
      const Entry& entry = *places_.at(piece.slice);
      receives_.add(view_of(entry.tensor, entry.slice.box.offsets, piece.box), piece.from);
    }
  }
  ~Bucket() {
    for (const auto& [index, entry] : places_)
      state_.runtime->free(entry->tensor.data, state_.device.device_type, state_.device.device_id);
  }
  Bucket(const Bucket&) = delete;

  const Transfers& receives() const { return receives_; }
  std::vector<hexad_weight_slice> slices() const {
    std::vector<hexad_weight_slice> list;
    for (const auto& [index, entry] : places_) {
      const LayoutSlice& slice = entry->slice;
      list.push_back({slice.name.c_str(), &entry->tensor, slice.global_shape.data(), slice.box.offsets.data(),
                      slice.box.shape.data(), static_cast<int32_t>(slice.box.shape.size()), entry->tensor.dtype});
    }
    return list;
  }

 private:
  struct Entry {
    const LayoutSlice& slice;
    std::vector<int64_t> shape;
    DLTensor tensor;
  };

  void add(size_t index) {
    const LayoutSlice& slice = state_.refit->needed.at(index);
    auto entry = std::make_unique<Entry>(Entry{slice, slice.box.shape, {}});
    const auto bytes = static_cast<uint64_t>(slice.box.elements() * slice.bits / 8);
    void* memory = nullptr;
    check(state_, state_.runtime->alloc(state_.device.device_type, state_.device.device_id, bytes, &memory));
    entry->tensor = {memory,
                     state_.device,
                     static_cast<int32_t>(slice.box.shape.size()),
                     {slice.type_code, slice.bits, 1},
                     entry->shape.data(),
                     nullptr,
                     0};
    places_[index] = std::move(entry);
  }

  const WorkerState& state_;
  std::map<size_t, std::unique_ptr<Entry>> places_;
  Transfers receives_;
};

// What the generator refuses is received to the end all the same: those who send would wait.
void receive_all(WorkerState& state, int64_t version) {
  plugin::GeneratorPlugin& generator = *state.generator;
  const plugin::CallContext context = state.context();
  generator.update_begin(context, version);
  std::exception_ptr refused;
  try {
    for (const RefitPart::Step& step : state.refit->steps) {
      Bucket bucket(state, step);
      exchange(state, {}, bucket.receives());
      const std::vector<hexad_weight_slice> slices = bucket.slices();
      if (slices.empty() || refused) continue;
      hexad_weight_list list{};
      list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
      list.slices = slices.data(), list.count = static_cast<int64_t>(slices.size());
      try {
        generator.update_bucket(context, list);
      } catch (const Error&) {
        refused = std::current_exception();
      }
    }
  } catch (...) {
    refused = std::current_exception();
  }
  generator.update_end(context, /*commit=*/!refused);
  if (refused) std::rethrow_exception(refused);
}

}  // namespace

namespace command {

protocol::RefitLayout::Reply refit_layout(WorkerState& state, const protocol::RefitLayout&) {
  protocol::RefitLayout::Reply reply{.held = {}, .needed = {}, .form = HEXAD_FORM_FULL};
  if (state.backend) reply.held = layout_of(state.backend->weight_layout(state.context()));
  if (state.generator) {
    reply.form = state.generator->info().weight_form;
    if (reply.form != HEXAD_FORM_FULL) reply.needed = layout_of(state.generator->weight_layout(state.context()));
  }
  return reply;
}

protocol::Nothing refit_connect(WorkerState& state, const protocol::RefitConnect& connect) {
  state.refit = connect.part;
  check(state, state.runtime->comm_across(connect.ranks.data(), static_cast<int32_t>(connect.ranks.size()),
                                          connect.name.c_str(), &state.refit_group));
  return {};
}

protocol::Refit::Reply refit_apart(WorkerState& state, const protocol::Refit& refit) {
  const auto start = Clock::now();
  if (state.backend)
    send_all(state);
  else
    receive_all(state, refit.version);
  if (state.generator && refit.recompute_kv_cache) {
    state.generator->sleep(state.context(), 1);  // what runs has lost its place, and is computed again
    state.generator->wake(state.context());
  }
  return {std::chrono::duration<double>(Clock::now() - start).count()};
}

}  // namespace command
}  // namespace hexad::cluster
