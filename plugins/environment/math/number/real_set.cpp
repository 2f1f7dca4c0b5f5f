#include "plugins/environment/math/number/real_set.hpp"

#include <algorithm>

#include "plugins/environment/math/number/polynomial.hpp"

namespace hexad::math {
namespace {

constexpr size_t kMostPieces = 200;

bool close(const Real& a, const Real& b) {
  static const Real tolerance("1e-40");
  return abs(a - b) <= tolerance * (1 + abs(a) + abs(b));
}

// -1, 0, 1 by place alone.
int order(const End& a, const End& b) {
  if (a.infinite != b.infinite) return a.infinite < b.infinite ? -1 : 1;
  if (a.infinite || close(a.at, b.at)) return 0;
  return a.at < b.at ? -1 : 1;
}

bool contains_written_point(const Node& a) {
  return a.is(Kind::decimal) ||
         std::any_of(a.args.begin(), a.args.end(), [](const auto& arg) { return contains_written_point(*arg); });
}

std::optional<End> end_of(const Node& a, bool open) {
  if (a.is_constant("oo")) return End{1, 0, true};
  if (a.is_constant("-oo")) return End{-1, 0, true};
  if (has_symbols(a) || not_real(a)) return {};
  const auto number = value(a, 0);
  return number ? std::optional(End{0, number->re, open}) : std::nullopt;
}

const End kLeft{-1, 0, true}, kRight{1, 0, true};

bool empty(const Piece& piece) {
  const int way = order(piece.begin, piece.end);
  return way > 0 || (way == 0 && (piece.begin.open || piece.end.open));
}

// Sorted, and what touches joined.
RealSet normal(RealSet set) {
  std::erase_if(set.pieces, empty);
  std::sort(set.pieces.begin(), set.pieces.end(), [](const Piece& a, const Piece& b) {
    const int way = order(a.begin, b.begin);
    return way != 0 ? way < 0 : !a.begin.open && b.begin.open;
  });
  std::vector<Piece> joined;
  for (const Piece& piece : set.pieces) {
    if (!joined.empty()) {
      End& end = joined.back().end;
      const int gap = order(end, piece.begin);
      if (gap > 0 || (gap == 0 && !(end.open && piece.begin.open))) {
        const int further = order(piece.end, end);
        if (further > 0 || (further == 0 && end.open)) end = piece.end;
        continue;
      }
    }
    joined.push_back(piece);
  }
  set.pieces = std::move(joined);
  return set;
}

RealSet united(RealSet a, const RealSet& b) {
  a.pieces.insert(a.pieces.end(), b.pieces.begin(), b.pieces.end());
  a.decimals |= b.decimals;
  return normal(std::move(a));
}

RealSet complement(const RealSet& a) {
  RealSet result;
  result.decimals = a.decimals;
  const auto flipped = [](End end) {
    end.open = end.infinite || !end.open;
    return end;
  };
  End from = kLeft;
  for (const Piece& piece : a.pieces) {
    if (piece.begin.infinite == 0) result.pieces.push_back({from, flipped(piece.begin)});
    if (piece.end.infinite > 0) return normal(std::move(result));
    from = flipped(piece.end);
  }
  result.pieces.push_back({from, kRight});
  return normal(std::move(result));
}

RealSet intersected(const RealSet& a, const RealSet& b) { return complement(united(complement(a), complement(b))); }

std::optional<RealSet> points(const Node& a) {
  RealSet result;
  for (const Expression& arg : a.args) {
    const auto end = end_of(*arg, false);
    if (!end || end->infinite) return {};
    result.pieces.push_back({*end, *end});
  }
  return normal(std::move(result));
}

// Where a polynomial has the sign that the relation asks for: looked up at its roots and between them.
std::optional<RealSet> holds(const Polynomial& polynomial, const std::string& sign) {
  const auto roots = real_roots(polynomial);
  if (!roots) return {};
  const bool at_roots = sign == "<=" || sign == ">=" || sign == "==";
  const auto between = [&](const Real& x) {
    const Real y = polynomial_at(polynomial, x);
    if (sign == "!=") return true;
    return sign[0] == '<' ? y < 0 : sign[0] == '>' ? y > 0 : false;
  };
  RealSet result;
  End from = kLeft;
  for (size_t i = 0; i <= roots->size(); ++i) {
    const bool last = i == roots->size();
    const End to = last ? kRight : End{0, (*roots)[i], true};
    const Real x = from.infinite && to.infinite ? Real(0)
                   : from.infinite              ? Real(to.at - 1)
                   : to.infinite                ? Real(from.at + 1)
                                                : Real((from.at + to.at) / 2);
    if (between(x)) result.pieces.push_back({from, to});
    if (!last && at_roots) result.pieces.push_back({{0, to.at, false}, {0, to.at, false}});
    from = to;
  }
  return normal(std::move(result));
}

std::optional<RealSet> solutions_of(const Expression& left, const std::string& sign, const Expression& right) {
  // |p| < c is p < c and p > -c; |p| > c is p > c or p < -c.
  if (left->is(Kind::function) && left->name == "abs" && !has_symbols(*right) && sign != "==" && sign != "!=") {
    const auto above = solutions_of(left->args[0], sign, right);
    const std::string other = (sign[0] == '<' ? ">" : "<") + sign.substr(1);
    const auto below = solutions_of(left->args[0], other, negated(right));
    if (!above || !below) return {};
    return sign[0] == '<' ? intersected(*above, *below) : united(*above, *below);
  }
  const auto polynomial = polynomial_of(node(Kind::add, {left, node(Kind::mul, {rational(-1), right})}));
  return polynomial && polynomial->size() > 1 ? holds(*polynomial, sign) : std::nullopt;
}

}  // namespace

std::optional<RealSet> real_set(const Node& a) {
  std::optional<RealSet> result;
  if (a.is(Kind::finite_set)) result = points(a);
  if (a.is(Kind::interval)) {
    const auto begin = end_of(*a.args[0], a.left_open), end = end_of(*a.args[1], a.right_open);
    if (begin && end) result = normal({{{*begin, *end}}, false});
  }
  if (a.is(Kind::named_set) && a.name == "empty") result = RealSet{};
  if (a.is(Kind::named_set) && a.name == "R") result = RealSet{{{kLeft, kRight}}, false};
  if (a.is(Kind::set_union) || a.is(Kind::complement)) {
    const auto left = real_set(*a.args[0]), right = real_set(*a.args[1]);
    if (left && right && left->pieces.size() + right->pieces.size() < kMostPieces) {
      result = a.is(Kind::set_union) ? united(*left, *right) : intersected(*left, complement(*right));
    }
  }
  if (result) result->decimals |= contains_written_point(a);
  return result;
}

bool equal_real_sets(const RealSet& a, const RealSet& b) {
  if (a.pieces.size() != b.pieces.size()) return false;
  const Real tolerance = a.decimals || b.decimals ? Real(5e-7) : Real(0);
  const auto agree = [&](const End& x, const End& y) {
    if (x.infinite != y.infinite || x.open != y.open) return false;
    return x.infinite != 0 || close(x.at, y.at) || abs(x.at - y.at) <= tolerance;
  };
  for (size_t i = 0; i < a.pieces.size(); ++i) {
    if (!agree(a.pieces[i].begin, b.pieces[i].begin) || !agree(a.pieces[i].end, b.pieces[i].end)) return false;
  }
  return true;
}

std::optional<RealSet> solution_set(const Node& relation) {
  if (relation.is(Kind::relation)) return solutions_of(relation.args[0], relation.name, relation.args[1]);
  std::optional<RealSet> all = RealSet{{{kLeft, kRight}}, false};
  for (const Expression& one : relation.args) {
    const auto some = solution_set(*one);
    if (!some) return {};
    all = intersected(*all, *some);
  }
  return all;
}

}  // namespace hexad::math
