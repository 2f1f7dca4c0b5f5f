// Ranks laid out as a grid with named dimensions, for example {"dp_replicate": 2, "dp_shard": 4, "tp": 2}.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::modeling {

// Row-major: neighbours in the last dimension have neighbouring ranks, as torch's init_device_mesh lays them out.
class DeviceMesh {
 public:
  // One entry of `names` a dimension. Throws Error when sizes are not positive or names repeat.
  DeviceMesh(std::vector<int64_t> sizes, std::vector<std::string> names);

  int64_t world_size() const;
  int64_t size(const std::string& name) const { return sizes_[index(name)]; }
  // Where `rank` stands in dimension `name`.
  int64_t coordinate(int64_t rank, const std::string& name) const;
  // The ranks that differ from `rank` in the dimensions `names` alone, in row-major order of those: a process group.
  // Several names make the flattened group (dp = dp_replicate x dp_shard).
  std::vector<int32_t> ranks_along(int64_t rank, const std::vector<std::string>& names) const;

 private:
  size_t index(const std::string& name) const;
  int64_t stride(size_t dimension) const;

  std::vector<int64_t> sizes_;
  std::vector<std::string> names_;
};

}  // namespace hexad::modeling
