// Configurations as they are written: without what came from the environment, and without secrets.
#include "lib/yaml/secret.hpp"

#include <cstdlib>

#include "lib/base/said/secret.hpp"
#include "lib/yaml/file.hpp"
#include "tests/config/support.hpp"

using namespace config_test;
using hexad::yaml::Node;

namespace {

// A variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
};

std::string written(const std::string& text, const Overrides& overrides = {}) {
  return hexad::yaml::without_secrets(load_text(text, overrides)).to_yaml();
}

}  // namespace

TEST_CASE("what the environment gave is written as it was asked for, and read back to the same") {
  const Variable token("HEXAD_TEST_TOKEN", "sk-77 'x' \"y\" ${z}"), number("HEXAD_TEST_NUMBER", "[1, 2]");
  const std::string text =
      "plain: '${oc.env:HEXAD_TEST_TOKEN}'\n"
      "within: 'Bearer \\${a} it''s ${oc.env:HEXAD_TEST_TOKEN} \\'\n"
      "again: ${within}\n"
      "beside: {x: '${..plain}/${.y}', y: \"b'\"}\n"
      "sum: \"${add:${oc.env:HEXAD_TEST_TOKEN},'it\\\\'s'}\"\n"
      "numbers: '${oc.decode:${oc.env:HEXAD_TEST_NUMBER}}'\n"
      "otherwise: '${oc.env:HEXAD_TEST_NOT_SET,7}'\n"
      "selected: '${oc.select:plain}'\n"
      "copy: ${beside}\n";
  const Node node = load_text(text);
  CHECK(node.as_string("plain") == "sk-77 'x' \"y\" ${z}");
  CHECK(node.as_ints("numbers") == std::vector<int64_t>{1, 2});
  const std::string yaml = hexad::yaml::without_secrets(node).to_yaml();
  CHECK_MESSAGE(yaml.find("sk-77") == std::string::npos, yaml);
  check_says(yaml, "plain: \"${oc.env:HEXAD_TEST_TOKEN}\"\n");
  check_says(yaml, "numbers: \"${oc.decode:${oc.env:HEXAD_TEST_NUMBER}}\"\n");
  check_says(yaml, "otherwise: \"7\"\n");  // nothing of the environment
  CHECK(load_text(yaml).to_json() == node.to_json());
}

TEST_CASE("a configuration that was written names the variable that is not set any more") {
  std::string yaml;
  {
    const Variable token("HEXAD_TEST_TOKEN", "sk-78");
    yaml = written("headers: {Authorization: 'Bearer ${oc.env:HEXAD_TEST_TOKEN}'}\n");
  }
  check_says(load_error(yaml), "environment variable HEXAD_TEST_TOKEN is not set");
}

TEST_CASE("values under names of secrets, and passwords in URLs, are masked") {
  const std::string yaml = written(
      "env: {x: {token: abc, url: 'http://u:pw@h/', password: 12345, api_key_env: NAME, eos_token: <eos>,\n"
      "  headers: {Authorization: Bearer abc, Accept: json}, headers_env: {Authorization: NAME}, api_keys: [a, b],\n"
      "  secret: null, cookie: ''}}\n");
  CHECK(yaml ==
        "env:\n  x:\n    token: \"***\"\n    url: \"http://u:***@h/\"\n    password: \"***\"\n    api_key_env: NAME\n"
        "    eos_token: \"<eos>\"\n    headers:\n      Authorization: \"***\"\n      Accept: json\n"
        "    headers_env:\n      Authorization: NAME\n    api_keys:\n      - \"***\"\n      - \"***\"\n"
        "    secret: null\n    cookie: \"\"\n");
}

TEST_CASE("secrets in lines of headers are masked, and asked for again") {
  const std::string yaml =
      written("env: {x: {headers: ['Authorization: Bearer abc', 'Accept: json'], auth: Bearer abc}}\n");
  for (const char* text : {"Authorization: ***", "Accept: json", "Bearer ***"}) check_says(yaml, text);
  CHECK_MESSAGE(yaml.find("abc") == std::string::npos, yaml);
  check_says(message_of([&] { hexad::yaml::refuse_masked(hexad::yaml::read_text(yaml, "c.yaml")); }),
             "env.x.headers.0: here was a secret");
  hexad::yaml::keep_secrets(load_text("a: {headers: ['Authorization: Bearer qwertz-7731'], token: Bearer qwe-5}\n"));
  CHECK(hexad::without_secrets("got qwertz-7731, qwe-5") == "got ***, ***");
}

TEST_CASE("a masked value is no value") {
  const auto refused = [](const std::string& text) {
    return message_of([&] { hexad::yaml::refuse_masked(hexad::yaml::read_text(text, "c.yaml")); });
  };
  CHECK(refused("env:\n  token: \"***\"\n") ==
        "c.yaml:2:3: env.token: here was a secret, which was left out when the configuration was written. Give it "
        "again: env.token=..., or ${oc.env:NAME} in the file, for what the environment has");
  check_says(refused("url: \"http://u:***@h/\"\n"), "url: here was a secret");
  CHECK(refused("pattern: \"***\"\n").empty());
  check_says(resolve_error({}, kValid + "env: {x: {token: '***'}}\n"), "env.x.token: here was a secret");
}

TEST_CASE("messages about overrides have no secrets") {
  const std::string unknown = resolve_error({"grpo.token=abcd-1234"});
  check_says(unknown, "override 'grpo.token=***'");
  CHECK(unknown.find("abcd-1234") == std::string::npos);
  const std::string broken = load_error("a: 1\n", {"+x={password: qwertz-9999, y: (}"});
  CHECK_MESSAGE(broken.find("qwertz-9999") == std::string::npos, broken);
  const std::string number = load_error("a: 1\n", {"+x.token=99999999999999999999999"});
  CHECK_MESSAGE(number.find("999999999") == std::string::npos, number);
  check_says(load_error("a: 1\n", {"+x.y=/mod\u00e8le"}), "unexpected '\u00e8'");
  CHECK(load_text("a: 1\n", {"+x.token=abcd-1234"}).as_string("x.token") == "abcd-1234");
}

TEST_CASE("aliases and references that multiply a long text are refused") {
  const std::string longest(1 << 19, 'x');
  std::string aliases = "a: &a " + longest + "\nb: [", references = "a: " + longest + "\nb: [";
  for (int i = 0; i < 1000; ++i) aliases += "*a, ", references += "'${a}', ";
  check_says(load_error(aliases + "1]\n"), "aliases make more than 64 MiB of text");
  check_says(load_error(references + "1]\n"), "interpolations come to more than 64 MiB of text");
}
