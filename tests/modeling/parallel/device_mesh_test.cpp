#include "modeling/parallel/device_mesh.hpp"

#include <doctest/doctest.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

using Ranks = std::vector<int32_t>;

TEST_CASE("a mesh is row-major: the last dimension's neighbours are neighbouring ranks") {
  const DeviceMesh mesh({2, 3, 2}, {"dp_replicate", "dp_shard", "tp"});
  CHECK(mesh.world_size() == 12);
  CHECK(mesh.size("dp_shard") == 3);
  for (int64_t rank = 0; rank < 12; ++rank) {
    CHECK(mesh.coordinate(rank, "dp_replicate") * 6 + mesh.coordinate(rank, "dp_shard") * 2 +
              mesh.coordinate(rank, "tp") ==
          rank);
  }
  CHECK(mesh.ranks_along(7, {"tp"}) == Ranks{6, 7});
  CHECK(mesh.ranks_along(7, {"dp_shard"}) == Ranks{7, 9, 11});
  CHECK(mesh.ranks_along(7, {"dp_replicate", "dp_shard"}) == Ranks{1, 3, 5, 7, 9, 11});
  CHECK(mesh.ranks_along(7, {}) == Ranks{7});
}

TEST_CASE("mesh errors name the dimension") {
  const auto make = [](std::vector<int64_t> sizes, std::vector<std::string> names) { DeviceMesh(sizes, names); };
  CHECK_THROWS_WITH_AS(make({2}, {"dp", "tp"}), "device mesh: 1 sizes for 2 names", Error);
  CHECK_THROWS_WITH_AS(make({2, 2}, {"dp", "dp"}), "device mesh: a dimension's name repeats", Error);
  CHECK_THROWS_WITH_AS(make({2, 0}, {"dp", "tp"}), "device mesh: dimension 'tp' has size 0, wanted at least 1", Error);
  CHECK_THROWS_WITH_AS(DeviceMesh({2}, {"dp"}).size("tp"), "device mesh: no dimension is named 'tp'", Error);
}

}  // namespace
}  // namespace hexad::modeling
