#include "core/plugin/confined/serve/served_call.hpp"

#include <stdexcept>

namespace hexad::plugin::confined {

Frame ServedLane::next_call() {
  std::optional<Frame> frame = channel_.receive();
  if (!frame || frame->kind != kCall) throw BadPacket("a message between calls");
  return std::move(*frame);
}

void ServedLane::send(FrameKind kind, const std::string& bytes) {
  const std::scoped_lock lock(mutex_);
  channel_.send(kind, bytes);
}

std::string ServedLane::ask(FrameKind kind, const std::string& bytes, hexad_code& code, std::string& text) {
  const std::scoped_lock lock(mutex_);
  channel_.send(kind, bytes);
  const std::optional<Frame> frame = channel_.receive();
  if (!frame || frame->kind != kReply) throw BadPacket("a message that is no reply");
  Reader in(frame->bytes);
  code = in.get<hexad_code>();
  text = in.text();
  return std::string(in.rest());
}

void ServedLane::take_memory(const CallHead& head, const std::vector<int>& descriptors) {
  if (descriptors.size() != size_t{head.new_down} + head.new_up) throw BadPacket("a call without its memory");
  size_t next = 0;
  if (head.new_down) down = SharedMemory(), down = SharedMemory::adopt(descriptors[next++]);
  if (head.new_up) up = SharedMemory(), up = SharedMemory::adopt(descriptors[next++]);
}

ServedLane*& ServedLane::of_this_thread() {
  static thread_local ServedLane* lane = nullptr;
  return lane;
}

ServedCall::ServedCall(ServedLane& lane_of, const CallHead& head, std::string_view who, Reader arguments)
    : Call(call_context, who), in(arguments), instance(head.instance), lane(lane_of) {
  call_context.step = head.step;
  call_context.flags = head.flags;
  call_context.deadline_ns = head.deadline_ns;
  call_context.cancelled = &reinterpret_cast<const SharedHead*>(lane.down.data())->cancelled;
  if (head.takes_metrics) {
    call_context.metric = [this](const Metric& metric) {
      Writer line;
      line.text(metric.name);
      line.put(metric.value);
      line.put(metric.weight);
      line.put(metric.reduce);
      lane.send(kMetric, line.bytes());
    };
  }
  if (head.detokenizes) {
    call_context.detokenize = [this](std::span<const int32_t> ids) {
      Writer question;
      question.array(ids.data(), static_cast<int64_t>(ids.size()));
      hexad_code code = HEXAD_OK;
      std::string text;
      const std::string reply = lane.ask(kDetokenize, question.bytes(), code, text);
      if (code != HEXAD_OK) throw std::runtime_error(text);
      return Reader(reply).text();
    };
  }
}

DLTensor* ServedCall::tensor_in(const SharedMemory& memory) {
  const auto head = in.get<TensorHead>();
  if (!head.present) return nullptr;
  Tensor& made = tensors_.emplace_back();
  made.shape = in.array<int64_t>();
  made.strides.resize(made.shape.size());
  int64_t stride = 1;
  for (size_t d = made.shape.size(); d-- > 0; stride *= made.shape[d]) made.strides[d] = stride;
  made.view = {memory.data() + head.offset,
               {kDLCPU, 0},
               static_cast<int32_t>(made.shape.size()),
               head.dtype,
               made.shape.data(),
               made.strides.data(),
               0};
  if (head.offset + tensor_bytes(made.view) > memory.size()) throw BadPacket("a tensor beyond the shared memory");
  return &made.view;
}

DLTensor* ServedCall::output() {
  DLTensor* made = tensor_in(lane.up);
  if (made) std::memset(made->data, 0, tensor_bytes(*made));
  return made;
}

std::vector<hexad_named_tensor> ServedCall::named_tensors() {
  std::vector<hexad_named_tensor> made(static_cast<size_t>(in.get<int64_t>()));
  for (hexad_named_tensor& named : made) {
    named.name = names_.emplace_back(in.text()).c_str();
    named.axis = in.get<int32_t>();
    named.tensor = tensor();
    named.lengths = tensor();
  }
  return made;
}

}  // namespace hexad::plugin::confined
