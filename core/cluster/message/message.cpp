#include "core/cluster/message/message.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/json_integer.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

data::Tensor wrap(const Json& description, const Frame& frame) {
  const data::DType dtype = data::dtype_named(description.at(0).get<std::string>());
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const Json& part : description.at(1)) {
    const int64_t extent = part.is_number_integer() ? part.get<int64_t>() : -1;
    if (extent < 0 || (extent > 0 && elements > kMaxElements / extent))
      fail(ErrorKind::worker, "message: bad shape {}", json_text(description));
    shape.push_back(extent);
    elements *= extent;
  }
  const size_t want = static_cast<size_t>(elements) * data::item_size(dtype);
  if (frame.size != want) {
    fail(ErrorKind::worker, "message: a tensor frame has {} bytes, its header says {} ({})", frame.size, want,
         json_text(description));
  }
  // Small frames live inside the ZeroMQ message, where nothing promises the alignment of the element type.
  if (reinterpret_cast<uintptr_t>(frame.data) % data::item_size(dtype) != 0) {
    data::Tensor copy(dtype, shape);
    std::memcpy(copy.data(), frame.data, frame.size);
    return copy;
  }
  return data::Tensor(dtype, shape, frame.owner, frame.data);
}

// Moves what says which message it is out of the header.
void take_envelope(Message& message) {
  Json& header = message.header;
  for (const auto& [key, name] : {std::pair("command", &message.command), std::pair("event", &message.event)}) {
    if (!header.contains(key)) continue;
    if (!header[key].is_string())
      fail(ErrorKind::worker, "message: '{}' must be a text, got {}", key, header[key].type_name());
    *name = header[key];
    header.erase(key);
  }
  if (!header.contains("step")) return;
  if (!header["step"].is_number_integer())
    fail(ErrorKind::worker, "message: 'step' must be a whole number, got {}", header["step"].type_name());
  message.step = header["step"];
  header.erase("step");
}

}  // namespace

void Message::put(const std::string& key, const data::Batch& batch) {
  Json columns = Json::array();
  const auto add = [this](const data::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensors.size() - 1;
  };
  const size_t cu_seqlens = add(batch.cu_seqlens_tensor());
  for (const auto& [name, column] : batch.columns()) {
    columns.push_back({name, std::string(data::name_of(column.axis)), add(column.tensor)});
  }
  Json description = {{"cu_seqlens", cu_seqlens}, {"columns", columns}};
  if (!batch.group_of().empty()) {
    description["groups"] = batch.groups();
    description["group_of"] = add(data::Tensor::of<int64_t>(batch.group_of()));
  }
  header[key] = description;
}

data::Batch Message::batch(const std::string& key) const {
  try {
    const Json& description = header.at(key);
    const auto numbers = [&](const Json& index) {
      const auto span = tensors.at(integer<size_t>(index)).span<int64_t>();
      return std::vector<int64_t>(span.begin(), span.end());
    };
    data::Batch batch = data::Batch::of_cu_seqlens(numbers(description.at("cu_seqlens")));
    if (description.contains("groups")) {
      batch.set_groups(numbers(description.at("group_of")), integer<int64_t>(description.at("groups")));
    }
    for (const Json& column : description.at("columns")) {
      batch.set(column.at(0).get<std::string>(), tensors.at(integer<size_t>(column.at(2))),
                data::axis_named(column.at(1).get<std::string>()));
    }
    return batch;
  } catch (const std::exception& error) {
    fail(ErrorKind::worker, "message '{}': no valid batch '{}': {}", name(), key, error.what());
  }
}

namespace {

constexpr const char* kFloat = "$float";

// JSON has no inf and nan: on the wire they are {"$float": "inf"}.
void name_infinities(Json& value) {
  if (value.is_structured()) {
    for (Json& item : value) name_infinities(item);
  } else if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = Json{{kFloat, fmt::format("{}", value.get<double>())}};
  }
}

void number_infinities(Json& value) {
  if (!value.is_structured()) return;
  const bool is_float = value.is_object() && value.size() == 1 && value.contains(kFloat) && value[kFloat].is_string();
  if (is_float) {
    value = std::strtod(value[kFloat].get<std::string>().c_str(), nullptr);
  } else {
    for (Json& item : value) number_infinities(item);
  }
}

}  // namespace

std::string encode_header(const Message& message) {
  Json descriptions = Json::array();
  for (const data::Tensor& tensor : message.tensors) {
    descriptions.push_back({std::string(data::name_of(tensor.dtype())), tensor.shape()});
  }
  Json header = message.header;
  if (!message.command.empty()) header["command"] = message.command, header["step"] = message.step;
  if (!message.event.empty()) header["event"] = message.event;
  header["tensors"] = descriptions;
  name_infinities(header);
  return json_text(header);
}

Message decode(const std::vector<Frame>& frames) {
  if (frames.empty()) fail(ErrorKind::worker, "message: no frames");
  Message message;
  message.header = try_parse_json<Json>({static_cast<const char*>(frames[0].data), frames[0].size});
  if (!message.header.is_object())
    fail(ErrorKind::worker, "message: the header of {} bytes is no JSON object", frames[0].size);
  const Json descriptions = message.header.value("tensors", Json::array());
  if (!descriptions.is_array() || descriptions.size() + 1 != frames.size()) {
    fail(ErrorKind::worker, "message: {} frames, its header describes {} tensors", frames.size(), descriptions.size());
  }
  try {
    for (size_t i = 0; i < descriptions.size(); ++i) message.tensors.push_back(wrap(descriptions[i], frames[i + 1]));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::worker, "message: bad tensor description: {}", error.what());
  }
  message.header.erase("tensors");
  number_infinities(message.header);
  take_envelope(message);
  return message;
}

}  // namespace hexad::cluster
