#include "core/plugin/plugin_config.hpp"

#include <limits>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

const char* const kSection = R"({
  "plugin": "toy", "ratio_clip_min": 0.2, "nested": {"a": 1}, "off": null,
  "plugin_config": {"clip_eps": 0.3, "ratio_clip_min": 0.5, "name": "x", "deep": {"list": [1, {"b": 2}]}, "flag": true,
                    "whole": 3.0}
})";

PluginConfig section(Locate locate = {}) { return PluginConfig("loss_fn", Json::parse(kSection), std::move(locate)); }

// Reads as plugins do, through the table.
struct Reader {
  explicit Reader(const PluginConfig& used) : config(used) {}
  const hexad_host* host = host_table(nullptr);
  CallContext context;
  Call call{context, "loss 'toy'"};
  const PluginConfig& config;

  hexad_code i64(const char* path, int64_t& value) {
    return host->config_i64(call.handle(), config.handle(), path, &value);
  }
  hexad_code f64(const char* path, double& value) {
    return host->config_f64(call.handle(), config.handle(), path, &value);
  }
  hexad_code boolean(const char* path, int32_t& value) {
    return host->config_bool(call.handle(), config.handle(), path, &value);
  }
  const char* text(const char* path, const char* value) {
    host->config_str(call.handle(), config.handle(), path, &value);
    return value;
  }
  std::string json(const char* path) {
    const char* out = nullptr;
    host->config_json(call.handle(), config.handle(), path, &out);
    return out ? out : "(absent)";
  }
};

}  // namespace

TEST_CASE("values come from plugin_config first, then from the section; absent and null keep the default") {
  const PluginConfig config = section();
  Reader reader(config);
  double number = 7;
  CHECK(reader.f64("ratio_clip_min", number) == HEXAD_OK);
  CHECK(number == 0.5);
  CHECK(reader.f64("nested.a", number) == HEXAD_OK);
  CHECK(number == 1);
  for (const char* path : {"off", "absent", "nested.a.b", "deep.list.9", "deep.list.x"}) {
    number = 7;
    CHECK(reader.f64(path, number) == HEXAD_OK);
    CHECK(number == 7);
  }
  int64_t integer = 0;
  CHECK(reader.i64("deep.list.1.b", integer) == HEXAD_OK);
  CHECK(integer == 2);
  CHECK(reader.i64("whole", integer) == HEXAD_OK);
  CHECK(integer == 3);
  int32_t flag = 0;
  CHECK(reader.boolean("flag", flag) == HEXAD_OK);
  CHECK(flag == 1);
  CHECK(std::string(reader.text("name", "")) == "x");
  CHECK(std::string(reader.text("absent", "default")) == "default");
  CHECK(reader.json("deep.list") == R"([1,{"b":2}])");
  CHECK(reader.json("off") == "null");
  CHECK(reader.json("absent") == "(absent)");
}

TEST_CASE("a wrong type names place, key, what was wanted and what was got") {
  const PluginConfig config =
      section([](std::string_view path) { return path == "loss_fn.plugin_config.name" ? "run.yaml:41:3" : ""; });
  double number = 7;
  Reader reader(config);
  CHECK(reader.f64("name", number) == HEXAD_INVALID_ARGUMENT);
  CHECK(number == 7);
  CHECK(reader.call.error_text() == "run.yaml:41:3: loss_fn.plugin_config.name must be a number, got string \"x\"");
  int64_t integer = 0;
  Reader second(config);
  CHECK(second.i64("clip_eps", integer) == HEXAD_INVALID_ARGUMENT);
  CHECK(second.call.error_text() == "loss_fn.plugin_config.clip_eps must be a whole number, got number 0.3");
  int32_t flag = 0;
  Reader third(config);
  CHECK(third.boolean("nested", flag) == HEXAD_INVALID_ARGUMENT);
  CHECK(third.call.error_text() == "loss_fn.nested must be true or false, got object {\"a\":1}");
}

TEST_CASE("keys of plugin_config that nothing read are told with the nearest key that was asked for") {
  const PluginConfig config(
      "loss_fn", Json::parse(R"({"plugin_config": {"clip_epss": 0.3, "deep": {"a": 1, "b": 2}}, "ignored": 1})"),
      [](std::string_view path) { return path == "loss_fn.plugin_config.clip_epss" ? "config.yaml:41" : ""; });
  Reader reader(config);
  double number = 0;
  reader.f64("clip_eps", number);
  reader.f64("deep.a", number);
  CHECK(config.unread_keys("ppo_clip_c") ==
        std::vector<std::string>{
            "config.yaml:41: loss_fn.plugin_config.clip_epss is not used by 'ppo_clip_c'. Did you mean clip_eps?",
            "loss_fn.plugin_config.deep.b is not used by 'ppo_clip_c'. Did you mean deep.a?"});
  reader.json("deep");
  CHECK(config.unread_keys("ppo_clip_c").size() == 1);
  reader.json("");
  CHECK(config.unread_keys("ppo_clip_c").empty());
}

TEST_CASE("large numbers are not bent") {
  const PluginConfig config("loss_fn",
                            Json::parse(R"({"big": 9223372036854775807, "more": 18446744073709551615, "e": 1e300})"));
  Reader reader(config);
  int64_t value = 5;
  CHECK(reader.i64("big", value) == HEXAD_OK);
  CHECK(value == std::numeric_limits<int64_t>::max());
  CHECK(reader.i64("more", value) == HEXAD_INVALID_ARGUMENT);
  CHECK(reader.i64("e", value) == HEXAD_INVALID_ARGUMENT);
}
