// Which variables are secrets, and that sandboxed programs are not given them.
#include "lib/process/secret.hpp"

#include "tests/lib/process/sandbox.hpp"

using namespace process_test;

TEST_CASE("variables are secrets by the words of their names, and by passwords in addresses") {
  for (const char* name : {"HF_TOKEN",
                           "HUGGING_FACE_HUB_TOKEN",
                           "WANDB_API_KEY",
                           "OPENAI_API_KEY",
                           "AWS_PROFILE",
                           "AWS_SECRET_ACCESS_KEY",
                           "aws_session_token",
                           "DB_PASSWORD",
                           "PGPASSWORD",
                           "AZURE_CLIENT_SECRET",
                           "SSH_AUTH_SOCK",
                           "MYSQL_PWD",
                           "GOOGLE_APPLICATION_CREDENTIALS",
                           "GITHUB_PAT",
                           "SSH_PRIVATE_KEY_FILE",
                           "githubToken",
                           "SENTRY_DSN",
                           "KEY",
                           "SSHPASS",
                           "AZURE_STORAGE_CONNECTION_STRING",
                           "VAULT_SECRETS_PATH",
                           "KEY_PASSPHRASE",
                           "X-Auth-Token",
                           "hubApiKey",
                           "SESSIONCOOKIE",
                           "API_KEY.old",
                           "REGISTRY_CREDENTIAL"})
    CHECK_MESSAGE(is_secret(name, "x"), name);
  for (const char* name : {"PATH", "HOME", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "MONKEY", "AUTHOR", "KEYBOARD",
                           "XAUTHORITY", "MAX_TOKENS", "COMPASS", "LANG", "TMPDIR", "PYTHONPATH", "AWSOME", ""})
    CHECK_MESSAGE(!is_secret(name, "x"), name);
  for (const char* value : {"postgres://me:pw@host/db", "http://u:p@proxy:3128", "a=1,amqp://u:p@h", "x://u:p@w@h",
                            "redis://:p,w@h", "a://h b://u:p^w@h"})
    CHECK_MESSAGE(is_secret("PLACE", value), value);
  for (const char* value : {"http://host:80/a@b", "http://user@host", "mailto:a@b", "://", "a://", "http://h/x:y@z"})
    CHECK_MESSAGE(!is_secret("PLACE", value), value);
}

TEST_CASE("a sandboxed program is given no secret but those that are named; others are given all") {
  const Variable token("HEXAD_TEST_TOKEN", "t"), key("HEXAD_TEST_KEY", "k"), word("HEXAD_TEST_WORD", "w");
  const std::string show = "echo $HEXAD_TEST_TOKEN $HEXAD_TEST_KEY $HEXAD_TEST_WORD";
  CHECK(inside({}, show) == "w\n");
  CHECK(inside({.strict = true, .pass_env = {"HEXAD_TEST_KEY"}}, show) == "k w\n");
  CHECK(output_of(show) == "t k w\n");
  Command command = {.arguments = {}, .variables = {{"HEXAD_TEST_TOKEN", "given"}}};  // by us, not inherited
  command.setup.sandbox = Sandbox{};
  CHECK(output_of(show, command) == "given w\n");
  const std::vector<std::string> names = secrets_of_ours({"HEXAD_TEST_KEY"});
  CHECK(std::count(names.begin(), names.end(), "HEXAD_TEST_TOKEN") == 1);
  CHECK(std::count(names.begin(), names.end(), "HEXAD_TEST_KEY") == 0);
}
