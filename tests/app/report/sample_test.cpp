// A logged sample as the page shows it.
#include "app/report/sample.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace hexad::report;
using Json = nlohmann::ordered_json;

namespace {

// Prompt of two tokens, then what the model wrote, a reply of the environment, and the model again.
const Json kLine = {{"content", "<q>ab!c"},
                    {"response", "ab!c"},
                    {"rewards", 0.5},
                    {"token_ids", {1, 2, 3, 4, 5, 6}},
                    {"token_loss_mask", {0.0, 0.0, 1.0, 1.0, 0.0, 1.0}},
                    {"advantages", {0.0, 0.0, -1.5, -1.5, 0.0, -1.5}},
                    {"generation_logprobs", {0.0, 0.0, -0.123456, -1.0, 0.0, -2.0}},
                    {"prev_logprobs", {0.0, -9.0, -0.125, -1.25, -7.0, -2.0}},
                    {"tokens", {"<q", ">", "a", "b", "!", "c"}}};

}  // namespace

TEST_CASE("tokens from the first that the model wrote, log-probs on those that it wrote") {
  const Json sample = report_sample(kLine, 7, 3);
  CHECK(sample.at("step") == 7);
  CHECK(sample.at("row") == 3);
  CHECK(sample.at("reward") == 0.5);
  CHECK(sample.at("advantage") == -1.5);
  CHECK(sample.at("length") == 3);
  CHECK(sample.at("prompt") == "<q>");
  CHECK(sample.at("response") == "ab!c");
  CHECK(sample.at("tokens") == Json{"a", "b", "!", "c"});
  CHECK(sample.at("written") == Json{1, 1, 0, 1});
  CHECK(sample.at("rollout") == Json{-0.1235, -1.0, nullptr, -2.0});
  CHECK(sample.at("train") == Json{-0.125, -1.25, nullptr, -2.0});
  CHECK_FALSE(sample.contains("left_out"));
}

TEST_CASE("without token texts there are ids; without tokens there is the text") {
  Json line = kLine;
  line.erase("tokens");
  CHECK(report_sample(line, 1, 0).at("tokens") == Json{"#3", "#4", "#5", "#6"});
  CHECK(report_sample(line, 1, 0).at("prompt") == "<q>");
  line.erase("token_ids");
  CHECK_FALSE(report_sample(line, 1, 0).contains("tokens"));
  line.erase("token_loss_mask");
  CHECK_FALSE(report_sample(line, 1, 0).contains("length"));
  CHECK(report_sample(Json::object(), 1, 0).at("reward").is_null());
}

TEST_CASE("log-probs that a run has not computed are none: null, and the zeros of older logs") {
  Json line = kLine;
  line["prev_logprobs"] = nullptr;
  CHECK(report_sample(line, 1, 0).at("train").is_null());
  CHECK(report_sample(line, 1, 0).at("rollout").at(0) == -0.1235);
  line["prev_logprobs"] = std::vector<double>(6, 0.0);
  CHECK(report_sample(line, 1, 0).at("train").is_null());
  line["generation_logprobs"] = line["prev_logprobs"];  // a model that is certain: the zeros are right
  CHECK(report_sample(line, 1, 0).at("train") == Json{0.0, 0.0, nullptr, 0.0});
}

TEST_CASE("what was expected, the parts of a reward, and why a sample may not have counted") {
  CHECK_FALSE(report_sample(kLine, 1, 0).contains("expected"));
  Json line = kLine;
  line.update(
      {{"expected_answer", "42"}, {"components", {{"tests", 1.0}}}, {"truncated", true}, {"sample_loss_mask", 0.0}});
  const Json sample = report_sample(line, 1, 0);
  CHECK(sample.at("expected") == "42");
  CHECK(sample.at("components").at("tests") == 1.0);
  CHECK(sample.at("truncated") == true);
  CHECK(sample.at("left_loss") == true);
  line.update({{"expected_answer", 42}, {"components", "none"}, {"truncated", false}, {"sample_loss_mask", 1.0}});
  for (const char* key : {"expected", "components", "truncated", "left_loss"})
    CHECK_MESSAGE(!report_sample(line, 1, 0).contains(key), key);
}

TEST_CASE("columns of other lengths or kinds are passed over") {
  Json line = kLine;
  line["prev_logprobs"] = {1.0};
  line["tokens"] = "text";
  line["advantages"] = nullptr;
  const Json sample = report_sample(line, 1, 0);
  CHECK(sample.at("train").is_null());
  CHECK(sample.at("tokens").at(0) == "#3");
  CHECK(sample.at("advantage").is_null());
}

TEST_CASE("the middle of a long sample is left out, and counted") {
  Json line = {{"response", std::string(20000, 'x') + "\u00e9"}};
  line["content"] = line["response"];
  line["token_ids"] = std::vector<int>(3000, 5);
  line["token_loss_mask"] = std::vector<double>(3000, 1.0);
  const Json sample = report_sample(line, 1, 0);
  CHECK(sample.at("tokens").size() == 1000);
  CHECK(sample.at("left_out") == Json{{"at", 600}, {"count", 2000}});
  CHECK(sample.at("length") == 3000);
  const std::string text = sample.at("response").get<std::string>();
  CHECK(text.size() < 8100);
  CHECK(text.find("[... 12002 bytes left out ...]") != std::string::npos);
  CHECK(text.ends_with("x\u00e9"));
}
