// The verifier against math-verify's verdicts, and on input that means harm.
#include "plugins/environment/math/verify.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace hexad::math;

namespace {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// Why a verdict may be another than math-verify's; empty where it has to be the same.
std::string reason_to_differ(const std::string& gold, const std::string& response) {
  const auto either_has = [&](const char* part) {
    return gold.find(part) != std::string::npos || response.find(part) != std::string::npos;
  };
  if (either_has("\\lim") || either_has("\\int")) return "limits and integrals are not computed";
  // sympy leaves 12**0.5 a decimal of 53 bits, whose last bit differs from the root's.
  if (either_has("^{0.5}") || either_has("^{2.0}")) return "a decimal exponent is taken for the number that it is";
  return {};
}

}  // namespace

TEST_CASE("verdicts are math-verify's") {
  const char* source = std::getenv("HEXAD_SOURCE_DIR");
  std::ifstream file(std::string(source ? source : ".") + "/tests/plugins/environment/math/math_verify_pairs.json");
  REQUIRE(file.good());
  const auto document = nlohmann::json::parse(file);
  size_t compared = 0, differing = 0;
  for (const auto& pair : document.at("pairs")) {
    const std::string gold = pair.at(1), response = pair.at(2);
    const bool right = verify(gold, response);
    ++compared;
    if (right == (pair.at(3) == 1)) continue;
    ++differing;
    CHECK_MESSAGE(!reason_to_differ(gold, response).empty(),
                  pair.at(0).get<std::string>() << ": gold " << gold << ", response " << response << ": " << right);
  }
  CHECK(compared > 2000);
  CHECK(differing <= 12);  // as many as peer_math_verify.py lists
}

TEST_CASE("what stands in the response is found") {
  CHECK(verify("12", "3 + 9 makes twelve: $12$."));
  CHECK(verify("5",
               "\\boxed{4}, but after checking all of it very carefully once again, step by step, it is \\boxed{5}"));
  CHECK(verify("7", "The final answer is $7$. I hope it is correct. Not $8$."));
  CHECK(verify("4,5", "$4$ and $5$"));
  CHECK(verify("x^2-1", "$(x-1)(x+1)$"));
  CHECK_FALSE(verify("x", "x"));  // letters outside of LaTeX are no answer
  CHECK_FALSE(verify("5", ""));
  CHECK_FALSE(verify("", "\\boxed{}"));
  CHECK_FALSE(verify("\\frac{1}{", "1"));
}

TEST_CASE("equality follows the kind of the gold answer") {
  CHECK(verify("1<x<2", "$(1,2)$"));
  CHECK_FALSE(verify("(1,2)", "$1<x<2$"));
  CHECK(verify("1/3", "0.333333"));
  CHECK_FALSE(verify("1/3", "0.33333"));
  CHECK_FALSE(verify("1", "0.9999999999"));
  CHECK(verify("50\\%", "50"));
  CHECK(verify("50\\%", "0.5"));
  CHECK_FALSE(verify("x=1", "$y=1$"));
}

TEST_CASE("a reading keeps the text where nothing can be read") {
  const Reading reading = read_answer("\\boxed{\\nonsense{5}}", false);
  CHECK_FALSE(reading.expression);
  CHECK(reading.text == "\\nonsense{5}");
  CHECK(verify("\\nonsense{5}", "\\boxed{\\nonsense{5}}"));  // equal texts agree
}

TEST_CASE("hostile input takes bounded time") {
  const std::vector<std::string> responses = {
      "$" + repeated("(", 5000) + "1" + repeated(")", 5000) + "$",
      "$" + repeated("{", 290) + "1" + repeated("}", 290) + "$",
      "$" + repeated("\\frac{1}{", 150) + "2" + repeated("}", 150) + "$",
      "$" + repeated("|x", 250) + "$",
      "$" + repeated("-", 500) + "1$",
      "$" + repeated("abc", 190) + "$",
      "$" + repeated("x+", 2000) + "x$",
      repeated("$", 100000),
      repeated("\\[", 50000),
      repeated("\\[", 50000) + "\\]",
      repeated("\\( ", 50000) + "\n\\)",
      repeated("\\boxed{", 30000),
      repeated("\\boxed{1}", 20000),
      repeated("\\boxed{1} and \\boxed{2} ", 10000),
      repeated("1 + ", 50000) + "x",
      repeated(" 1+1x", 50000),
      repeated("1", 200000),
      "1" + repeated(",111", 50000),
      repeated("answer = = = ", 20000),
      repeated("final answer" + repeated(" ", 90), 1000),
      repeated(" ", 200000),
      repeated("\\text{", 20000),
      "$1" + repeated(" ", 15000) + "x$",
      "$9^{9^{9^{9^{9}}}}$",
      "$((((5!)!)!)!)!$",
      "$1000000!$",
      "$2^{65000}" + repeated("\\cdot 3^{40000}", 20) + "$",
      "$1E999999999$",
      "$1E1000+1E-1000$",
      "$\\binom{1000000}{500000}$",
      "$\\sum_{i=1}^{1000000000}i$",
      "$\\sum_{i=1}^{1000}\\sum_{j=1}^{1000}\\sum_{k=1}^{1000}ijk$",
      "$" + repeated("\\frac{d", 60) + "x" + repeated("}{dx}", 60) + "$",
      "$\\sqrt[64]{" + repeated("9", 2000) + "}$",
      repeated("9", 4400),
      "1/" + repeated("(", 900) + "1" + repeated(")", 900),
      std::string(1000, '\0'),
      "\xff\xfe \xc3 5 \xed\xa0\x80",
  };
  for (const std::string& response : responses) {
    INFO(response.substr(0, 60));
    const auto start = std::chrono::steady_clock::now();
    verify("1", response);
    verify(response, "$x$");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    CHECK(took.count() < 20);  // a second at most on a machine at rest
  }
  CHECK_FALSE(verify("(x^2-1)^{12}>0", "$(0,1)$"));
  CHECK_FALSE(verify("((((x^2+1)^{24})^{24})^{24})^{24}>0", "$(0,1)$"));
}
