#include "core/cluster/placement.hpp"

#include <doctest/doctest.h>

using hexad::cluster::Placement;

TEST_CASE("every generating rank has a place among the replicas") {
  const Placement apart{{0, 2}, {2, 4}, 2};  // ranks 0 and 1 train
  CHECK(apart.replicas() == 2);
  CHECK(apart.replica_of(2) == 0);
  CHECK(apart.replica_of(3) == 0);
  CHECK(apart.replica_of(4) == 1);
  CHECK(apart.block_of(5).first == 4);
  CHECK(hexad::cluster::colocated(4).replica_of(3) == 3);
}
