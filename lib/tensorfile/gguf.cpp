#include "lib/tensorfile/gguf.hpp"

#include <algorithm>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/tensorfile/gguf_block.hpp"
#include "lib/tensorfile/gguf_cursor.hpp"

namespace hexad::tensorfile {
namespace {

struct TensorHeader {
  GgufTensor tensor;
  uint64_t offset, bytes;
};

constexpr uint32_t max_dimensions = 4;

TensorHeader read_tensor_header(GgufCursor& cursor) {
  TensorHeader header;
  header.tensor.name = cursor.read_string();
  const std::string where = fmt::format("{}: tensor \"{}\"", cursor.origin(), header.tensor.name);
  const auto dimensions = cursor.read<uint32_t>();
  if (dimensions > max_dimensions) {
    fail(ErrorKind::data, "{}: has {} dimensions, at most {} are possible", where, dimensions, max_dimensions);
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto dimension = cursor.read<uint64_t>();
    // 2^60 elements: the products below stay inside 64 bits.
    if (dimension > (1ull << 60) || __builtin_mul_overflow(elements, dimension, &elements) || elements > (1ull << 60)) {
      fail(ErrorKind::data, "{}: its dimensions are too large", where);
    }
    header.tensor.shape.insert(header.tensor.shape.begin(), static_cast<int64_t>(dimension));
  }
  const auto type = cursor.read<uint32_t>();
  const GgufBlock* block = gguf_block(type);
  if (!block) {
    const std::string_view name = gguf_type_name(type);
    fail(ErrorKind::data, "{}: is stored as {}, which cannot be read; convert it to one of {} first", where,
         name.empty() ? fmt::format("unknown type {}", type) : std::string(name), readable_gguf_types());
  }
  const uint64_t row = header.tensor.shape.empty() ? 1 : static_cast<uint64_t>(header.tensor.shape.back());
  if (row % block->elements != 0) {
    fail(ErrorKind::data, "{}: rows of {} elements do not divide into {} blocks of {}", where, row, block->name,
         block->elements);
  }
  header.tensor.type = block->type;
  header.bytes = elements / block->elements * block->bytes;
  header.offset = cursor.read<uint64_t>();
  return header;
}

// Points every tensor at its data, which starts at `begin` in the file.
std::vector<GgufTensor> place(std::vector<TensorHeader> headers, std::span<const std::byte> file, uint64_t begin,
                              uint64_t alignment, const std::string& origin) {
  const std::span<const std::byte> data = begin <= file.size() ? file.subspan(begin) : std::span<const std::byte>();
  std::vector<GgufTensor> tensors;
  std::set<std::string> names;
  for (TensorHeader& header : headers) {
    const std::string& name = header.tensor.name;
    if (!names.insert(name).second) fail(ErrorKind::data, "{}: tensor \"{}\" appears twice", origin, name);
    if (header.offset % alignment != 0) {
      fail(ErrorKind::data, "{}: tensor \"{}\": offset {} is no multiple of the alignment {}", origin, name,
           header.offset, alignment);
    }
    if (header.offset > data.size() || header.bytes > data.size() - header.offset) {
      fail(ErrorKind::data, "{}: truncated: tensor \"{}\" needs {} bytes at byte {}, but the file has {}", origin, name,
           header.bytes, begin + header.offset, file.size());
    }
    header.tensor.data = data.subspan(header.offset, header.bytes);
    tensors.push_back(header.tensor);
  }
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return std::pair(a->data.data(), a->data.size()) < std::pair(b->data.data(), b->data.size());
  });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->data.data() + order[i - 1]->data.size() > order[i]->data.data()) {
      fail(ErrorKind::data, "{}: tensors \"{}\" and \"{}\" overlap", origin, order[i - 1]->name, order[i]->name);
    }
  }
  return tensors;
}

std::string_view kind_of(const GgufValue& value) {
  constexpr std::string_view kinds[] = {
      "a boolean",          "an integer",         "a number",          "a text",
      "a list of booleans", "a list of integers", "a list of numbers", "a list of texts"};
  return kinds[value.index()];
}

}  // namespace

uint64_t GgufTensor::elements() const {
  uint64_t count = 1;
  for (int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

Gguf Gguf::open(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  Gguf gguf = parse(file->bytes(), path);
  gguf.file_ = std::move(file);
  return gguf;
}

Gguf Gguf::parse(std::span<const std::byte> file, const std::filesystem::path& path) {
  Gguf gguf;
  gguf.path_ = path;
  GgufCursor cursor(file, path.string());
  const auto magic = cursor.read<uint32_t>();
  if (magic != 0x46554747) {
    fail(ErrorKind::data, "{}: not a GGUF file: it starts with {:#010x}, wanted 0x46554747 (\"GGUF\")", path.string(),
         magic);
  }
  const auto version = cursor.read<uint32_t>();
  if (version != 2 && version != 3) {
    fail(ErrorKind::data, "{}: GGUF version {} cannot be read, only 2 and 3 (little-endian)", path.string(), version);
  }
  const auto tensor_count = cursor.read<uint64_t>();
  gguf.metadata_ = read_gguf_metadata(cursor, cursor.read<uint64_t>());

  constexpr uint64_t smallest_header = sizeof(uint64_t) + 2 * sizeof(uint32_t) + sizeof(uint64_t);
  cursor.require_items(tensor_count, smallest_header, "tensors");
  std::vector<TensorHeader> headers;
  for (uint64_t i = 0; i < tensor_count; ++i) headers.push_back(read_tensor_header(cursor));

  const auto alignment = gguf.get_or<int64_t>("general.alignment", 32);
  if (alignment <= 0 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) {
    fail(ErrorKind::data, "{}: general.alignment is {}, wanted a power of two", path.string(), alignment);
  }
  const auto unit = static_cast<uint64_t>(alignment);
  const uint64_t begin = (cursor.position() + unit - 1) / unit * unit;
  gguf.tensors_ = place(std::move(headers), file, begin, unit, path.string());
  return gguf;
}

const GgufTensor* Gguf::find(std::string_view name) const {
  for (const GgufTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

template <typename T>
T Gguf::get(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    std::vector<std::string> keys;
    for (const auto& [name, value] : metadata_) keys.push_back(name);
    const std::optional<std::string> similar = nearest(key, keys);
    fail(ErrorKind::data, "{}: metadata \"{}\" is missing{}", path_.string(), key,
         similar ? fmt::format(" (there is \"{}\")", *similar) : "");
  }
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  if constexpr (std::is_same_v<T, double>) {
    if (const int64_t* value = std::get_if<int64_t>(&found->second)) return static_cast<double>(*value);
  }
  fail(ErrorKind::data, "{}: metadata \"{}\" is {}, wanted {}", path_.string(), key, kind_of(found->second),
       kind_of(GgufValue(T())));
}

template <typename T>
T Gguf::get_or(const std::string& key, T fallback) const {
  return metadata_.contains(key) ? get<T>(key) : fallback;
}

#define HEXAD_GGUF_GET(T)                            \
  template T Gguf::get<T>(const std::string&) const; \
  template T Gguf::get_or<T>(const std::string&, T) const;
HEXAD_GGUF_GET(bool)
HEXAD_GGUF_GET(int64_t)
HEXAD_GGUF_GET(double)
HEXAD_GGUF_GET(std::string)
HEXAD_GGUF_GET(std::vector<int64_t>)
HEXAD_GGUF_GET(std::vector<double>)
HEXAD_GGUF_GET(std::vector<std::string>)
#undef HEXAD_GGUF_GET

}  // namespace hexad::tensorfile
