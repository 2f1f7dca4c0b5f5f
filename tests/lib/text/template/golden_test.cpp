#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/text/template/chat_template.hpp"
#include "tests/support/golden.hpp"

using hexad::text::ChatOptions;
using hexad::text::ChatTemplate;

TEST_SUITE("golden") {
  TEST_CASE("chat templates give transformers' text") {
    golden::Json templates, tools;
    golden::for_each_case("chat_templates", [&](const golden::Json& test_case) {
      if (golden::prefix(test_case) == "templates") {
        templates = test_case.at("inputs").at("templates");
        tools = test_case.at("inputs").at("tools");
        CHECK(!templates.empty());
        return;
      }
      const golden::Json &config = test_case.at("config"), &expected = test_case.at("expected");
      ChatOptions options;
      options.tools = tools.at(config.at("tools").get<std::string>());
      options.extra = config.at("kwargs");
      options.add_generation_prompt = config.value("add_generation_prompt", false);
      options.continue_final_message = config.value("continue_final_message", false);
      options.special_tokens = {{"bos_token", "<|begin|>"}, {"eos_token", "<|end|>"}, {"pad_token", "<|pad|>"}};
      const std::string name = config.at("template");
      try {
        const std::string text = ChatTemplate::parse(templates.at(name).get<std::string>(), name)
                                     .render(test_case.at("inputs").at("messages"), options);
        if (expected.contains("error")) {
          FAIL_CHECK("rendered to \"" << text << "\", wanted the error " << expected.at("error").dump());
        } else {
          CHECK(text == expected.at("text").get<std::string>());
        }
      } catch (const hexad::Error& error) {
        const bool refusal = expected.contains("error") || test_case.value("optional", false);
        CHECK_MESSAGE(refusal, "refused: " << error.what());
      }
    });
  }
}
