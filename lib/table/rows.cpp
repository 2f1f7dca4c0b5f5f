#include "lib/table/rows.hpp"

#include <algorithm>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/table/arrow_rows.hpp"
#include "lib/table/container.hpp"
#include "lib/table/folder.hpp"
#include "lib/table/json_file.hpp"
#include "lib/table/packed_text.hpp"

namespace hexad::table {
namespace {

namespace fs = std::filesystem;

using Parts = std::vector<std::unique_ptr<Rows>>;

class JoinedRows : public Rows {
 public:
  explicit JoinedRows(Parts parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Row row(int64_t index) const override {
    const auto end = std::ranges::upper_bound(ends_, index);
    const auto part = static_cast<size_t>(end - ends_.begin());
    return parts_[part]->row(index - (part == 0 ? 0 : ends_[part - 1]));
  }

 private:
  Parts parts_;
  std::vector<int64_t> ends_;  // the first row behind each part
};

std::unique_ptr<Rows> open_one(const fs::path& file, Budget& budget) {
  const auto container = container_of(file);
  if (!container) fail(ErrorKind::data, "{}: no file of rows by its name; want {}", file.string(), kContainers);
  auto bytes = bytes_of_file(file, file);  // where there is none, the system's words say so
  if (bytes->size() == 0 && is_text(container->form) && container->packing == Packing::none)
    return std::make_unique<JoinedRows>(Parts());
  if (container->form != Form::json) return arrow_rows(file, *container, budget);
  if (container->packing != Packing::none) bytes = unpacked_bytes(file, container->packing, budget);
  return json_rows(std::move(bytes), file);
}

}  // namespace

std::unique_ptr<Rows> open_file(const fs::path& file) {
  Budget budget;
  auto rows = open_one(file, budget);
  if (rows->size() == 0) fail(ErrorKind::data, "{}: holds no rows", file.string());
  return rows;
}

std::unique_ptr<Rows> open(const fs::path& path, const std::string& split) {
  if (!fs::is_directory(path)) return open_file(path);
  Budget budget;
  Parts parts;
  const std::vector<fs::path> files = files_of_split(path, split);
  for (const fs::path& file : files) {
    auto part = open_one(file, budget);
    if (part->size() > 0) parts.push_back(std::move(part));  // who writes shards leaves some without rows
  }
  if (parts.empty() && files.size() == 1) fail(ErrorKind::data, "{}: holds no rows", files[0].string());
  if (parts.empty())
    fail(ErrorKind::data, "{}: not one of the {} files of split '{}' holds rows", path.string(), files.size(), split);
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<JoinedRows>(std::move(parts));
}

}  // namespace hexad::table
