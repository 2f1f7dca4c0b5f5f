#include <algorithm>
#include <map>
#include <set>

#include "core/data/dataset/procedural.hpp"
#include "core/data/dataset/procedural_spec.hpp"
#include "core/data/dataset/processor.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

// The instance is a string over the alphabet; solve() gets it with the alphabet and may write a second field of the
// question (the letter to count).
struct Kind {
  std::string describes;
  std::string alphabet;
  std::pair<int64_t, int64_t> length;
  std::string question;  // {0}: the instance, {1}: the second field
  std::function<std::string(const std::string& instance, const std::string& alphabet)> second;
  std::function<std::string(const std::string& instance, const std::string& alphabet, const std::string& second)> solve;
};

using Text = const std::string&;

std::string none(Text, Text) { return ""; }

std::string sorted(std::string text) {
  std::sort(text.begin(), text.end());
  return text;
}

// The symbol after the last one, the first after the last of the alphabet.
std::string successor(Text instance, Text alphabet, Text) {
  return std::string(1, alphabet[(alphabet.find(instance.back()) + 1) % alphabet.size()]);
}

// "@x" marks x: the marker stands before one symbol of the instance, which is chosen by the instance itself.
size_t marked(Text instance) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : instance) hash = (hash ^ c) * 0x100000001b3;
  return (hash >> 20) % instance.size();
}

const std::map<std::string, Kind>& kinds() {
  static const std::string digits = "0123456789";
  static const std::map<std::string, Kind> all = {
      {"sort_digits",
       {"the digits in ascending order",
        digits,
        {3, 6},
        "Sort the digits {0} in ascending order. Answer with only the digits.",
        none,
        [](Text instance, Text, Text) { return sorted(instance); }}},
      {"reverse",
       {"the symbols in reverse order",
        "abcdefgh",
        {3, 6},
        "Write {0} backwards. Answer with only the result.",
        none,
        [](Text instance, Text, Text) { return std::string(instance.rbegin(), instance.rend()); }}},
      {"copy",
       {"the symbols as they are",
        "abcdefgh",
        {3, 6},
        "Repeat exactly: {0}",
        none,
        [](Text instance, Text, Text) { return instance; }}},
      {"count_letter",
       {"how often a letter occurs",
        "abcd",
        {4, 9},
        "How many times does the letter {1} occur in {0}? Answer with only the number.",
        [](Text instance, Text) { return std::string(1, instance[marked(instance)]); },
        [](Text instance, Text, Text letter) {
          return fmt::to_string(std::count(instance.begin(), instance.end(), letter[0]));
        }}},
      {"parity",
       {"whether the number of ones is even or odd",
        "01",
        {8, 12},
        "Is the number of ones in {0} even or odd? Answer with one word.",
        none,
        [](Text instance, Text, Text) {
          return std::count(instance.begin(), instance.end(), '1') % 2 ? "odd" : "even";
        }}},
      {"successor",
       {"the symbol of the alphabet after the last symbol of the instance",
        "abcdefgh",
        {4, 4},
        "{0}",
        none,
        successor}},
      {"first",
       {"the first symbol",
        "abcdefgh",
        {4, 4},
        "{0}",
        none,
        [](Text instance, Text, Text) { return instance.substr(0, 1); }}},
      {"larger_digit",
       {"the largest digit",
        digits,
        {2, 2},
        "Which digit is the largest: {0}? Answer with only the digit.",
        none,
        [](Text instance, Text, Text) { return std::string(1, *std::max_element(instance.begin(), instance.end())); }}},
  };
  return all;
}

const Kind& kind_named(const std::string& name) {
  const auto found = kinds().find(name);
  if (found != kinds().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : kinds()) names.push_back(entry.first);
  fail(ErrorKind::config, "dataset puzzle: unknown kind '{}'{}; known: {}", name, did_you_mean(name, names),
       joined(names));
}

}  // namespace

DatasetSplit make_puzzle(const nlohmann::ordered_json& spec, uint64_t seed) {
  ProceduralSpec keys(spec, "puzzle");
  const std::string name = keys.text("kind", "");
  const Kind& kind = kind_named(name);
  const std::string alphabet = keys.text("alphabet", kind.alphabet);
  const bool distinct = std::set<char>(alphabet.begin(), alphabet.end()).size() == alphabet.size();
  const bool ascii = std::all_of(alphabet.begin(), alphabet.end(), [](unsigned char c) { return c > 32 && c < 127; });
  if (alphabet.size() < 2 || !distinct || !ascii)
    keys.refuse("alphabet", "two or more different visible ASCII characters");
  const auto [shortest, longest] = keys.range("length", kind.length, 1);
  const std::string question = keys.text("question", kind.question);
  const Sizes sizes = read_sizes(keys);
  keys.finish();

  return draw("puzzle-" + name, sizes, seed, [&, shortest = shortest, longest = longest](CounterRandom& random) {
    const uint64_t length =
        static_cast<uint64_t>(shortest) + random.below(static_cast<uint64_t>(longest - shortest) + 1);
    std::string instance(length, ' ');
    for (char& symbol : instance) symbol = alphabet[random.below(alphabet.size())];
    const std::string second = kind.second(instance, alphabet);
    Question drawn;
    drawn.key = instance;
    drawn.text = format_template(question, {instance, second}, "puzzle: question");
    drawn.answer = kind.solve(instance, alphabet, second);
    return drawn;
  });
}

std::map<std::string, std::string> puzzle_kinds() {
  std::map<std::string, std::string> result;
  for (const auto& [name, kind] : kinds()) result[name] = kind.describes;
  return result;
}

}  // namespace hexad::data
