// Sets of real numbers: finitely many pieces between known ends.
#pragma once
#include <optional>
#include <vector>

#include "plugins/environment/math/evaluate.hpp"

namespace hexad::math {

// A place of the extended line: its infinities by `infinite` = -1, 1.
struct End {
  int infinite = 0;
  Real at = 0;
  bool open = false;
};
struct Piece {
  End begin, end;
};
struct RealSet {
  std::vector<Piece> pieces;  // from left to right, no two touch
  bool decimals = false;      // some end was written with a point: compared to six decimals
};

// Nothing for sets with symbols, of complex or of whole numbers, of things that are no numbers, and for intersections,
// which math-verify leaves as they are written.
std::optional<RealSet> real_set(const Node& a);
bool equal_real_sets(const RealSet& a, const RealSet& b);

// Where a relation, or each of a chain, holds: of polynomials of one symbol and of absolute values of them.
std::optional<RealSet> solution_set(const Node& relation);

}  // namespace hexad::math
