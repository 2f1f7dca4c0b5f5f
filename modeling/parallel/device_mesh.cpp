#include "modeling/parallel/device_mesh.hpp"

#include <algorithm>
#include <set>

#include "modeling/error.hpp"

namespace hexad::modeling {

DeviceMesh::DeviceMesh(std::vector<int64_t> sizes, std::vector<std::string> names)
    : sizes_(std::move(sizes)), names_(std::move(names)) {
  if (sizes_.size() != names_.size()) fail("device mesh: {} sizes for {} names", sizes_.size(), names_.size());
  if (std::set<std::string>(names_.begin(), names_.end()).size() != names_.size())
    fail("device mesh: a dimension's name repeats");
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (sizes_[i] < 1) fail("device mesh: dimension '{}' has size {}, wanted at least 1", names_[i], sizes_[i]);
}

size_t DeviceMesh::index(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) fail("device mesh: no dimension is named '{}'", name);
  return static_cast<size_t>(found - names_.begin());
}

int64_t DeviceMesh::stride(size_t dimension) const {
  int64_t stride = 1;
  for (size_t i = dimension + 1; i < sizes_.size(); ++i) stride *= sizes_[i];
  return stride;
}

int64_t DeviceMesh::world_size() const {
  int64_t product = 1;
  for (int64_t size : sizes_) product *= size;
  return product;
}

int64_t DeviceMesh::coordinate(int64_t rank, const std::string& name) const {
  const size_t dimension = index(name);
  return rank / stride(dimension) % sizes_[dimension];
}

std::vector<int32_t> DeviceMesh::ranks_along(int64_t rank, const std::vector<std::string>& names) const {
  std::vector<int32_t> ranks;
  const auto inside = [&](size_t i) { return std::find(names.begin(), names.end(), names_[i]) != names.end(); };
  for (const std::string& name : names) index(name);  // refuses unknown names
  for (int64_t other = 0; other < world_size(); ++other) {
    bool same = true;
    for (size_t i = 0; i < sizes_.size(); ++i)
      same = same && (inside(i) || coordinate(other, names_[i]) == coordinate(rank, names_[i]));
    if (same) ranks.push_back(static_cast<int32_t>(other));
  }
  return ranks;
}

}  // namespace hexad::modeling
