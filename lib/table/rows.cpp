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

std::unique_ptr<Rows> open_one(const fs::path& file, Budget& budget) {
  const auto container = container_of(file);
  if (!container) fail(ErrorKind::data, "{}: no file of rows by its name; want {}", file.string(), kContainers);
  auto bytes = bytes_of_file(file, file);  // where there is none, the system's words say so
  if (container->form != Form::json) return arrow_rows(file, *container, budget);
  if (container->packing != Packing::none) bytes = unpacked_bytes(file, container->packing, budget);
  return json_rows(std::move(bytes), file);
}

class JoinedRows : public Rows {
 public:
  explicit JoinedRows(std::vector<std::unique_ptr<Rows>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  Row row(int64_t index) const override {
    const auto end = std::ranges::upper_bound(ends_, index);
    const auto part = static_cast<size_t>(end - ends_.begin());
    return parts_[part]->row(index - (part == 0 ? 0 : ends_[part - 1]));
  }

 private:
  std::vector<std::unique_ptr<Rows>> parts_;
  std::vector<int64_t> ends_;  // the first row behind each part
};

}  // namespace

std::unique_ptr<Rows> open_file(const fs::path& file) {
  Budget budget;
  return open_one(file, budget);
}

std::unique_ptr<Rows> open(const fs::path& path, const std::string& split) {
  if (!fs::is_directory(path)) return open_file(path);
  Budget budget;
  std::vector<std::unique_ptr<Rows>> parts;
  for (const fs::path& file : files_of_split(path, split)) parts.push_back(open_one(file, budget));
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<JoinedRows>(std::move(parts));
}

}  // namespace hexad::table
