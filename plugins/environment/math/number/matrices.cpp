#include "plugins/environment/math/equality.hpp"
#include "plugins/environment/math/latex/rewrite.hpp"

namespace hexad::math {
namespace {

constexpr size_t kMostCells = 4096;

Expression times(const Expression& a, const Expression& b) {
  if (!a->is(Kind::matrix) && !b->is(Kind::matrix)) return product(a, b);
  auto result = std::make_shared<Node>(a->is(Kind::matrix) ? *a : *b);
  if (!a->is(Kind::matrix) || !b->is(Kind::matrix)) {
    const Expression& factor = a->is(Kind::matrix) ? b : a;
    for (Expression& cell : result->args) cell = product(factor, cell);
    return result;
  }
  if (a->columns != b->rows) return nullptr;
  if (a->rows * b->columns * a->columns > kMostCells) throw TooMuch();
  result->args.clear();
  result->rows = a->rows, result->columns = b->columns;
  for (size_t i = 0; i < a->rows; ++i) {
    for (size_t j = 0; j < b->columns; ++j) {
      std::vector<Expression> terms;
      for (size_t k = 0; k < a->columns; ++k)
        terms.push_back(product(a->args[i * a->columns + k], b->args[k * b->columns + j]));
      result->args.push_back(node(Kind::add, std::move(terms)));
    }
  }
  return result;
}

Expression plus(const Expression& a, const Expression& b) {
  if (!a->is(Kind::matrix) || !b->is(Kind::matrix) || a->rows != b->rows || a->columns != b->columns) return nullptr;
  auto result = std::make_shared<Node>(*a);
  for (size_t i = 0; i < result->args.size(); ++i) result->args[i] = sum(a->args[i], b->args[i]);
  return result;
}

Expression folded(const Expression& a) {
  if (!has_matrix(*a) || a->is(Kind::matrix)) return a;
  if (!a->is(Kind::add) && !a->is(Kind::mul)) return nullptr;
  Expression total;
  for (const Expression& arg : a->args) {
    const Expression one = folded(arg);
    if (!one) return nullptr;
    total = !total ? one : a->is(Kind::add) ? plus(total, one) : times(total, one);
    if (!total) return nullptr;
  }
  return total;
}

}  // namespace

Expression concrete_matrix(const Expression& a) {
  Expression result = has_matrix(*a) ? folded(a) : nullptr;
  return result && result->is(Kind::matrix) ? result : nullptr;
}

}  // namespace hexad::math
