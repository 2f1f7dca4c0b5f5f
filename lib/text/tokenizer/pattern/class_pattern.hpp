// A bracketed character class of Oniguruma, put together as a PCRE2 pattern that matches the same one character. PCRE2
// knows neither classes in classes nor intersections: those become alternatives and look-aheads.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hexad::text {

class ClassPattern {
 public:
  bool is_open() const { return !open_.empty(); }
  // Enters a class, in the one that is open if there is one.
  void open(bool negative) { open_.push_back({negative, {}, {}, {}}); }
  // Members of the innermost class, in PCRE2's syntax.
  void add(std::string_view members) { open_.back().members += members; }
  // Every character that is none of these.
  void add_others(std::string_view members);
  // &&: what comes next has to hold as well.
  void intersect();
  // Leaves the innermost class. Returns the pattern of the outermost one, "" where one is open still.
  std::string close();

 private:
  struct Class {
    bool negative;
    std::string members;             // content of a plain class
    std::vector<std::string> parts;  // patterns of one character, beside the members
    std::vector<std::string> sides;  // what stood before each &&
  };
  static std::string side(const Class& open);
  static std::string pattern(Class& open);

  std::vector<Class> open_;
};

}  // namespace hexad::text
