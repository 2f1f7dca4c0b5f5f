// Verdicts of the plugin math: JSON lines {"gold": .., "response": ..} from standard input, one line out for each:
// 1 or 0, and the microseconds it took.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "plugins/environment/math/verify.hpp"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto pair = nlohmann::json::parse(line);
    const std::string gold = pair.at("gold"), response = pair.at("response");
    const auto start = std::chrono::steady_clock::now();
    const bool right = hexad::math::verify(gold, response);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    std::cout << right << ' ' << took.count() << '\n';
  }
}
