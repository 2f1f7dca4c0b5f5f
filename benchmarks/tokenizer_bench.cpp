// Times Tokenizer::encode on one core; benchmarks/tokenizer_speed.py builds and calls it.
//
//   tokenizer_bench MODEL_DIR DOCS.jsonl ROUNDS    {"text": ...} lines in; one JSON object with the best round out
//   tokenizer_bench MODEL_DIR DOCS.jsonl ids       the ids of every line, one JSON list a line
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/text/tokenizer/tokenizer.hpp"

namespace {

// CPU time of one thread, so that a busy machine does not count.
double seconds_of(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: tokenizer_bench MODEL_DIR DOCS.jsonl ROUNDS|ids\n";
    return 2;
  }
  std::vector<std::string> docs;
  size_t bytes = 0;
  std::ifstream in(argv[2]);
  for (std::string line; std::getline(in, line);) {
    docs.push_back(nlohmann::json::parse(line).at("text").get<std::string>());
    bytes += docs.back().size();
  }
  std::shared_ptr<const hexad::text::Tokenizer> tokenizer;
  const double load = seconds_of([&] { tokenizer = hexad::text::Tokenizer::load(argv[1]); });
  if (std::string_view(argv[3]) == "ids") {
    for (const std::string& doc : docs) std::cout << nlohmann::json(tokenizer->encode(doc, false)).dump() << '\n';
    return 0;
  }
  double best = 1e9, first = 0, decode = 1e9;
  size_t tokens = 0;
  for (int round = 0; round < std::atoi(argv[3]); ++round) {
    std::vector<std::vector<int32_t>> ids(docs.size());
    const double took = seconds_of([&] {
      for (size_t i = 0; i < docs.size(); ++i) ids[i] = tokenizer->encode(docs[i], false);
    });
    if (round == 0) first = took;
    best = std::min(best, took);
    tokens = 0;
    for (const auto& each : ids) tokens += each.size();
    decode = std::min(decode, seconds_of([&] {
                        for (const auto& each : ids) tokenizer->decode(each, false);
                      }));
  }
  const double mb = static_cast<double>(bytes) / 1e6;
  const nlohmann::json result{{"load_s", load},         {"first_mb_s", mb / first},
                              {"best_mb_s", mb / best}, {"decode_mb_s", mb / decode},
                              {"tokens", tokens},       {"mb", mb}};
  std::cout << result.dump() << '\n';
}
