#include "plugins/environment/math/latex/parse_tree.hpp"

#include <algorithm>

#include "plugins/environment/math/latex/rewrite.hpp"

namespace hexad::math {
namespace {

using Places = std::vector<uint16_t>;  // sorted

// Rules inside of rules: a level of brackets has about a dozen.
constexpr int kDeepest = 3000;
constexpr size_t kMostWork = 3'000'000;

bool meet(const Places& a, const Places& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j]) return true;
    ++(a[i] < b[j] ? i : j);
  }
  return false;
}

class Parser {
 public:
  explicit Parser(const std::vector<Lexeme>& lexemes)
      : lexemes_(lexemes), rules_(grammar().rules), known_(rules_.size() * (lexemes.size() + 1)) {}

  std::optional<ParseNode> whole() {
    const Places all{static_cast<uint16_t>(lexemes_.size())};
    if (!meet(ends(0, 0), all)) return {};
    ParseNode root;
    root.rule = rules_[0].name;
    build(0, 0, all, root);
    return root;
  }

 private:
  struct Known {
    bool computed = false;
    Places ends;
  };

  // Where rule `rule` can end when it starts at `at`.
  const Places& ends(uint16_t rule, uint16_t at) {
    Known& known = known_[rule * (lexemes_.size() + 1) + at];
    if (known.computed) return known.ends;
    if (++depth_ > kDeepest) throw TooMuch();
    Places found;
    for (const auto& alternative : rules_[rule].alternatives) {
      Places reached{at};
      for (const Symbol& symbol : alternative) {
        reached = step(symbol, reached);
        if (reached.empty()) break;
      }
      found.insert(found.end(), reached.begin(), reached.end());
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    --depth_;
    known.ends = std::move(found);
    known.computed = true;
    return known.ends;
  }
  Places ends(const Symbol& symbol, uint16_t at) {
    if (!symbol.is_token) return ends(symbol.index, at);
    const bool here = at < lexemes_.size() && static_cast<uint16_t>(lexemes_[at].token) == symbol.index;
    return here ? Places{static_cast<uint16_t>(at + 1)} : Places{};
  }
  Places step(const Symbol& symbol, const Places& from) {
    if (from.size() == 1) return ends(symbol, from[0]);
    Places all;
    for (const uint16_t at : from) {
      const Places some = ends(symbol, at);
      all.insert(all.end(), some.begin(), some.end());
      work_ += some.size() + 1;
    }
    if (work_ > kMostWork) throw TooMuch();
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Appends to `parent` the children of the first derivation of `rule` from `at` that ends in `goals`; returns its end.
  uint16_t build(uint16_t rule, uint16_t at, const Places& goals, ParseNode& parent) {
    for (const auto& alternative : rules_[rule].alternatives) {
      std::vector<Places> reached{{at}};
      for (const Symbol& symbol : alternative) reached.push_back(step(symbol, reached.back()));
      std::vector<Places> useful(reached.size());
      std::set_intersection(reached.back().begin(), reached.back().end(), goals.begin(), goals.end(),
                            std::back_inserter(useful.back()));
      for (size_t i = alternative.size(); i-- > 0;) {
        for (const uint16_t from : reached[i]) {
          if (meet(ends(alternative[i], from), useful[i + 1])) useful[i].push_back(from);
        }
      }
      if (useful[0].empty()) continue;
      uint16_t place = at;
      for (size_t i = 0; i < alternative.size(); ++i) place = append(alternative[i], place, useful[i + 1], parent);
      return place;
    }
    return at;  // not reached: the caller knows that the goals can be reached
  }
  uint16_t append(const Symbol& symbol, uint16_t at, const Places& goals, ParseNode& parent) {
    if (!symbol.is_token && rules_[symbol.index].name.empty()) return build(symbol.index, at, goals, parent);
    ParseNode node;
    node.begin = at;
    uint16_t end = static_cast<uint16_t>(at + 1);
    if (symbol.is_token) {
      node.token = static_cast<Token>(symbol.index);
    } else {
      node.rule = rules_[symbol.index].name;
      end = build(symbol.index, at, goals, node);
    }
    node.end = end;
    parent.children.push_back(std::move(node));
    return end;
  }

  const std::vector<Lexeme>& lexemes_;
  const std::vector<Rule>& rules_;
  std::vector<Known> known_;
  int depth_ = 0;
  size_t work_ = 0;
};

}  // namespace

const ParseNode* ParseNode::child(std::string_view name, size_t nth) const {
  for (const ParseNode& node : children) {
    if (node.is(name) && nth-- == 0) return &node;
  }
  return nullptr;
}

const ParseNode* ParseNode::child(Token which) const {
  for (const ParseNode& node : children) {
    if (node.is(which)) return &node;
  }
  return nullptr;
}

std::optional<ParseNode> parse_tree(const std::vector<Lexeme>& lexemes) {
  if (lexemes.size() > kMostLexemes) return {};
  return Parser(lexemes).whole();
}

}  // namespace hexad::math
