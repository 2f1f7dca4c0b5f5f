#include "core/data/dataset/procedural.hpp"
#include "core/data/dataset/procedural_spec.hpp"
#include "core/data/dataset/processor.hpp"

namespace hexad::data {

DatasetSplit make_arithmetic(const nlohmann::ordered_json& spec, uint64_t seed) {
  constexpr int64_t kLargest = 1000000000;  // the product fits 64 bits
  ProceduralSpec keys(spec, "arithmetic");
  const std::vector<std::string> operators = keys.texts("operators", {"+", "-"});
  for (const std::string& symbol : operators) {
    if (symbol != "+" && symbol != "-" && symbol != "*") keys.refuse("operators", "a list of +, - and *");
  }
  const int64_t smallest = keys.integer("min_operand", 0, -kLargest, kLargest);
  const int64_t largest = keys.integer("max_operand", 99, smallest, kLargest);
  const std::string question = keys.text("question", "What is {0} {1} {2}? Answer with only the number.");
  const Sizes sizes = read_sizes(keys);
  keys.finish();

  const uint64_t operands = static_cast<uint64_t>(largest - smallest) + 1;
  return draw("arithmetic", sizes, seed, [&](CounterRandom& random) {
    const int64_t a = smallest + static_cast<int64_t>(random.below(operands));
    const int64_t b = smallest + static_cast<int64_t>(random.below(operands));
    const std::string& symbol = operators[random.below(operators.size())];
    const int64_t value = symbol == "+" ? a + b : symbol == "-" ? a - b : a * b;
    Question drawn;
    drawn.key = fmt::format("{} {} {}", a, symbol, b);
    drawn.side_key = fmt::format("{} {}", std::min(a, b), std::max(a, b));
    drawn.text = format_template(question, {fmt::to_string(a), symbol, fmt::to_string(b)}, "arithmetic: question");
    drawn.answer = fmt::to_string(value);
    return drawn;
  });
}

}  // namespace hexad::data
