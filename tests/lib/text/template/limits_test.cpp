// A template that a stranger wrote must end, in bounded memory, with an error.
#include <doctest/doctest.h>

#include <chrono>
#include <random>

#include "lib/base/error.hpp"
#include "lib/text/template/chat_template.hpp"

using hexad::text::ChatOptions;
using hexad::text::ChatTemplate;
using Json = nlohmann::ordered_json;

namespace {

std::string failure(const std::string& source) {
  ChatOptions options;
  options.limits.steps = 3'000'000;
  options.limits.memory_bytes = 64 << 20;
  options.limits.output_bytes = 1 << 20;
  try {
    return "rendered " + std::to_string(ChatTemplate::parse(source, "t")
                                            .render(Json::array({{{"role", "user"}, {"content", "Hi"}}}), options)
                                            .size());
  } catch (const hexad::Error& error) {
    return error.what();
  }
}

std::string repeated(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}";
const std::string ends = "{% endfor %}{% endfor %}";
const std::string too_long = "t:1: the template runs too long (more than 3000000 steps)";
const std::string too_big = "t:1: the template uses too much memory (more than 67108864 bytes)";
const std::string too_deep = "t:1: the template nests too deeply (more than 400 levels)";

}  // namespace

TEST_CASE("loops and slow filters end") {
  CHECK(failure(loops + ends) == too_long);
  CHECK(failure(loops + "{{ 'x' }}" + ends).find("t:1: the template") == 0);
  CHECK(failure(loops + "{% if ('x' * 100000) == ('y' * 100000) %}{% endif %}" + ends).find("t:1: the template") == 0);
  CHECK(failure("{% set x = 'ab' * 1000000 %}" + loops + "{% if 'q' in x %}{% endif %}" + ends) == too_long);
  CHECK(failure("{% set x = 'ab' * 1000000 %}" + loops + "{{ x | length if x.count('c') }}" + ends)
            .find("t:1: the template") == 0);
  CHECK(failure(loops + "{% set y = [3, 1, 2] * 1000 | length %}{% if (y | sort) %}{% endif %}" + ends).find("t:1: ") ==
        0);
  CHECK(failure("{{ range(100001) }}") ==
        "t:1: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
}

TEST_CASE("memory and output are bounded") {
  CHECK(failure("{{ 'a' * 10 ** 15 }}") == too_big);
  CHECK(failure("{{ ([0] * 10 ** 15) | length }}") == too_big);
  CHECK(failure("{{ '%1000000s' % 1 }}{{ '%1000000s' % 1 }}") ==
        "t:1: the template's output is too long (more than 1048576 bytes)");
  CHECK(failure("{{ 'a'.ljust(10 ** 12) }}") == too_big);
  CHECK(failure("{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}") ==
        too_big);
  CHECK(failure("{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s.replace('a', 'aa') ~ n.s %}{% "
                "endfor %}")
            .find("t:1: the template") == 0);
  CHECK(failure("{% for i in range(9999) %}{{ 'abcdefgh' * 100 }}{% endfor %}") ==
        "t:1: the template's output is too long (more than 1048576 bytes)");
  // A short way to write a list of 2^60 elements.
  CHECK(failure("{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}")
            .find("t:1: the template") == 0);
  CHECK(failure("{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l == "
                "n.l + [] }}") == too_long);
  CHECK(failure("{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l | "
                "tojson }}")
            .find("t:1: the template") == 0);
}

TEST_CASE("recursion is bounded") {
  CHECK(failure("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}") == too_deep);
  CHECK(failure("{% set n = namespace() %}{% set n.n = n %}{{ n }}") == too_deep);
  CHECK(failure("{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}") == too_deep);
  CHECK(failure("{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}") ==
        "t:1: values nest too deeply (more than 200 levels)");
  CHECK(
      failure(
          "{% set n = namespace(g=[1]) %}{% for i in range(9999) %}{% set n.g = n.g | map('string') %}{% endfor %}") ==
      "t:1: values nest too deeply (more than 200 levels)");
  // A chain of namespaces may be long: it is taken apart link by link.
  CHECK(
      failure(
          "{% set n = namespace(l=none) %}{% for i in range(49999) %}{% set n.l = namespace(l=n.l) %}{% endfor %}ok") ==
      "rendered 2");
  CHECK(failure("{{ " + repeated("(", 10000) + "1" + repeated(")", 10000) + " }}") ==
        "t:1: nested too deeply (more than 150 levels)");
  CHECK(failure("{{ " + repeated("-", 10000) + "1 }}") == "t:1: nested too deeply (more than 150 levels)");
  CHECK(failure("{{ " + repeated("not ", 10000) + "1 }}") == "t:1: nested too deeply (more than 150 levels)");
  CHECK(failure("{{ 1" + repeated(" + 1", 10000) + " }}") ==
        "t:1: an expression with more than 250 operators in a row");
  CHECK(failure("{{ x" + repeated(".x", 10000) + " }}") == "t:1: an expression with more than 250 operators in a row");
  CHECK(failure(repeated("{% if true %}", 10000)) == "t:1: nested too deeply (more than 150 levels)");
  CHECK(failure("{{ 0" + repeated(" ~ 1", 10000) + " }}") == "rendered 10001");
}

TEST_CASE("mangled templates give errors, never crashes") {
  const std::string source =
      "{%- set ns = namespace(a=1) -%}{% macro f(x, y=[1, 2]) %}{{ x ~ y | join(',') }}{% endmacro %}\n"
      "{% for m in messages if m.role != 'x' %}{{ loop.index }}{{ m['content'][1:-1] | upper | tojson }}\n"
      "{% if m is mapping and not loop.last %}{{ f(1, y=(2, 3)) }}{% elif 'a' in m %}{% break %}{% else %}{# c #}{% "
      "endif %}"
      "{% endfor %}{% set b %}{{ '%s' % 1.5e3 }}{% endset %}{{ b if b else {'k': -1 ** 2} }}{% raw %}{{{% endraw %}";
  std::mt19937 random(7);
  const std::string alphabet = "{}%#-+|()[]'\"\\.,:=~<>*/ \nabfmx01_éif";
  int rendered = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string mangled = source;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const size_t at = random() % mangled.size();
      switch (random() % 4) {
        case 0: mangled.erase(at, 1 + random() % 8); break;
        case 1: mangled.insert(at, 1, alphabet[random() % alphabet.size()]); break;
        case 2: mangled[at] = alphabet[random() % alphabet.size()]; break;
        default: mangled.insert(at, mangled.substr(random() % mangled.size(), random() % 20));
      }
      if (mangled.empty()) mangled = "x";
    }
    rendered += failure(mangled).starts_with("rendered");
  }
  CHECK(rendered > 0);
}
