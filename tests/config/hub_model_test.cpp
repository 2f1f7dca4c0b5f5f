// The config.json that rules read, of a model that the Hub's cache has.
#include <doctest/doctest.h>

#include "core/config/declaration/scope.hpp"
#include "tests/support/hub_cache.hpp"

using namespace hexad;

TEST_CASE("rules read the model's config.json in the Hub's cache, where its name is no folder") {
  test_support::HubCache cache;
  cache.files("models--owner--tiny", {{"config.json", R"({"hidden_size": 64})"}});
  yaml::Node root(yaml::Node::Map{});
  const auto model_of = [&](const std::string& name) {
    root.set("policy.model_name", yaml::Node(name));
    return config::model_names(root);
  };
  CHECK(model_of("owner/tiny").at("hidden_size") == 64);
  CHECK(model_of("owner/none").is_null());
  cache.ref("models--owner--tiny", "main", "damaged");  // the run says so; a check of its keys goes on
  CHECK(model_of("owner/tiny").is_null());
}
