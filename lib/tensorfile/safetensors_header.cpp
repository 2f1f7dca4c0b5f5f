#include "lib/tensorfile/safetensors_header.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::tensorfile {
namespace {

using HeaderJson = nlohmann::json;                  // sorted: the ordered one would take quadratic time for the names
constexpr uint64_t max_header_bytes = 100'000'000;  // the format's own bound

// Parses the header's JSON; a name that appears twice is an error (nlohmann would keep the last).
HeaderJson parse_header(std::string_view text, const std::string& origin) {
  std::set<std::string> names;
  int depth_limit_exceeded = 0;
  const auto callback = [&](int depth, HeaderJson::parse_event_t event, HeaderJson& parsed) {
    if (depth > 8) depth_limit_exceeded = 1;
    if (depth == 1 && event == HeaderJson::parse_event_t::key && !names.insert(parsed.get<std::string>()).second) {
      fail(ErrorKind::data, "{}: tensor \"{}\" appears twice in the header", origin, parsed.get<std::string>());
    }
    return depth <= 8;
  };
  HeaderJson header;
  try {
    header = parse_json<HeaderJson>(text, callback);
  } catch (const HeaderJson::exception& error) {
    fail(ErrorKind::data, "{}: the header is not JSON: {}", origin, error.what());
  }
  if (depth_limit_exceeded || !header.is_object()) {
    fail(ErrorKind::data, "{}: the header must be an object of tensors", origin);
  }
  return header;
}

std::vector<uint64_t> unsigned_list(const HeaderJson& entry, const char* key, const std::string& where) {
  if (!entry.contains(key) || !entry[key].is_array()) fail(ErrorKind::data, "{}: \"{}\" is missing", where, key);
  std::vector<uint64_t> list;
  for (const HeaderJson& element : entry[key]) {
    if (!element.is_number_unsigned()) {
      fail(ErrorKind::data, "{}: \"{}\" holds {}, wanted non-negative integers", where, key, json_text(element));
    }
    list.push_back(element.get<uint64_t>());
  }
  return list;
}

SafetensorsEntry parse_entry(const std::string& name, const HeaderJson& entry, std::span<const std::byte> data,
                             const std::string& origin) {
  const std::string where = fmt::format("{}: tensor \"{}\"", origin, name);
  if (!entry.is_object()) fail(ErrorKind::data, "{}: its header entry is not an object", where);
  const auto dtype_field = entry.find("dtype");
  const std::string dtype_text =
      dtype_field != entry.end() && dtype_field->is_string() ? dtype_field->get<std::string>() : "";
  const std::optional<DType> dtype = dtype_from_name(dtype_text);
  if (!dtype) fail(ErrorKind::data, "{}: unknown dtype \"{}\"", where, dtype_text);

  SafetensorsEntry result;
  result.name = name;
  result.dtype = *dtype;
  uint64_t bytes = dtype_size(*dtype);
  for (uint64_t dimension : unsigned_list(entry, "shape", where)) {
    if (dimension > INT64_MAX || __builtin_mul_overflow(bytes, dimension, &bytes)) {
      fail(ErrorKind::data, "{}: a dimension of {} makes it too large", where, dimension);
    }
    result.shape.push_back(static_cast<int64_t>(dimension));
  }
  const std::vector<uint64_t> offsets = unsigned_list(entry, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    fail(ErrorKind::data, "{}: data_offsets [{}] is not a range", where, joined(offsets));
  }
  if (offsets[1] > data.size()) {
    fail(ErrorKind::data, "{}: ends at byte {} of the data, but the file has only {} (truncated?)", where, offsets[1],
         data.size());
  }
  if (offsets[1] - offsets[0] != bytes) {
    fail(ErrorKind::data, "{}: has {} bytes, but {} of shape [{}] needs {}", where, offsets[1] - offsets[0], dtype_text,
         joined(result.shape), bytes);
  }
  result.data = data.subspan(offsets[0], bytes);
  return result;
}

void check_coverage(const std::vector<SafetensorsEntry>& entries, std::span<const std::byte> data,
                    const std::string& origin) {
  const std::byte* expected = data.data();
  const SafetensorsEntry* previous = nullptr;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.data.data() < expected) {
      fail(ErrorKind::data, "{}: tensors \"{}\" and \"{}\" overlap", origin, previous->name, entry.name);
    }
    if (entry.data.data() > expected) {
      fail(ErrorKind::data, "{}: {} bytes before tensor \"{}\" belong to no tensor", origin,
           entry.data.data() - expected, entry.name);
    }
    expected = entry.data.data() + entry.data.size();
    previous = &entry;
  }
  if (const auto rest = data.data() + data.size() - expected; rest > 0) {
    fail(ErrorKind::data, "{}: {} bytes at the end belong to no tensor", origin, rest);
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& origin) {
  uint64_t length = 0;
  if (file.size() < sizeof length) {
    fail(ErrorKind::data, "{}: not a safetensors file: only {} bytes long", origin, file.size());
  }
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 64));
  if (const std::string_view hint = lfs_hint(start); !hint.empty()) fail(ErrorKind::data, "{}{}", origin, hint);
  std::memcpy(&length, file.data(), sizeof length);
  if (length > max_header_bytes) {
    fail(ErrorKind::data, "{}: not a safetensors file: its header would be {} bytes long", origin, length);
  }
  if (length > file.size() - sizeof length) {
    fail(ErrorKind::data, "{}: truncated: the header needs {} bytes, the file has {}", origin, length + sizeof length,
         file.size());
  }
  const HeaderJson json = parse_header({reinterpret_cast<const char*>(file.data()) + sizeof length, length}, origin);
  const std::span<const std::byte> data = file.subspan(sizeof length + length);

  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name != "__metadata__") {
      header.entries.push_back(parse_entry(name, entry, data, origin));
      continue;
    }
    if (!entry.is_object()) fail(ErrorKind::data, "{}: __metadata__ is not an object", origin);
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail(ErrorKind::data, "{}: __metadata__ \"{}\" is not text", origin, key);
      header.metadata[key] = value.get<std::string>();
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  check_coverage(header.entries, data, origin);
  return header;
}

std::string format_safetensors_header(const std::vector<TensorSpec>& specs,
                                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorSpec& spec : specs) {
    json[spec.name] = {
        {"dtype", dtype_name(spec.dtype)}, {"shape", spec.shape}, {"data_offsets", {offset, offset + spec.bytes()}}};
    offset += spec.bytes();
  }
  std::string text = json_text(json);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text;
}

}  // namespace hexad::tensorfile
