// Which names have secrets for values, and texts without them.
#include "lib/base/said/secret.hpp"

#include <doctest/doctest.h>

using namespace hexad;

TEST_CASE("names say what is secret") {
  for (const char* name : {"token",
                           "env.x.token",
                           "HF_TOKEN",
                           "hubToken",
                           "api_key",
                           "X-Api-Key",
                           "apiKey",
                           "apikey",
                           "Authorization",
                           "Proxy-Authorization",
                           "password",
                           "db_password",
                           "client_secret",
                           "aws_secret_access_key",
                           "private-key",
                           "credentials",
                           "Set-Cookie",
                           "passphrase",
                           "AZURE_CONNECTION_STRING",
                           "hf_pat",
                           "jwt",
                           "AccountKey"})
    CHECK_MESSAGE(names_secret(name), name);
  for (const char* name : {"tokens", "max_new_tokens", "eos_token", "pad_token", "tokenizer", "token_ids",
                           "api_key_env", "token_file", "prompt_key", "key", "format", "repeat", "packing",
                           "experts_per_token", "stop_token_ids", "secretary", "authorized", "bucket_keys", ""})
    CHECK_MESSAGE(!names_secret(name), name);
}

TEST_CASE("URLs lose their passwords, and what their queries have for secrets") {
  CHECK(without_url_secrets("http://host:80/a?b=c#d") == "http://host:80/a?b=c#d");
  CHECK(without_url_secrets("https://user:pa:ss@host/a@b") == "https://user:***@host/a@b");
  CHECK(without_url_secrets("cannot ask https://ghp_1@host/x, nor 'ftp://a:b@c'") ==
        "cannot ask https://***@host/x, nor 'ftp://a:***@c'");
  CHECK(without_url_secrets("http://h/p?api_key=1&x=2&access_token=3&sig=4#f") ==
        "http://h/p?api_key=***&x=2&access_token=***&sig=***#f");
  CHECK(without_url_secrets("https://b.s3/o?X-Amz-Credential=1&X-Amz-Date=2&X-Amz-Signature=3&AWSAccessKeyId=4") ==
        "https://b.s3/o?X-Amz-Credential=***&X-Amz-Date=2&X-Amz-Signature=***&AWSAccessKeyId=***");
  CHECK(without_url_secrets("a :// b://") == "a :// b://");
  for (const char* odd : {"p,w", "p;w", "p^w|x", "p(w)", "[pw]", "{pw}", "p\\w", "p:w@x"}) {
    CAPTURE(odd);
    CHECK(without_url_secrets("redis://me:" + std::string(odd) + "@h:6379/0, 2") == "redis://me:***@h:6379/0, 2");
  }
  CHECK(without_url_secrets(R"({"url":"http://h:80","to":"a@b"})") == R"({"url":"http://h:80","to":"a@b"})");
  CHECK(without_url_secrets("[http://h:80/, mailto:a@b]") == "[http://h:80/, mailto:a@b]");
}

TEST_CASE("a line of HTTP's headers has a secret behind its name or scheme, and no other text does") {
  for (const char* text : {"Authorization: Bearer abc", "X-Api-Key: abc", "Cookie: a=b; c=d", "Bearer abc"})
    CHECK_MESSAGE(header_secret(text) < std::string_view(text).size(), text);
  CHECK(header_secret("Bearer abc") == 7);
  CHECK(header_secret("X-Api-Key: abc") == 11);
  for (const char* text : {"Accept: json", "Bearer of good news", "Bearer ", "Say the password: abc", "Secret: {}\n",
                           "Token abc", "token:abc", ""})
    CHECK_MESSAGE(header_secret(text) == std::string_view::npos, text);
}

TEST_CASE("an override loses the values under names of secrets") {
  CHECK(without_assigned_secrets("env.x.token=abc") == "env.x.token=***");
  CHECK(without_assigned_secrets("+env.x.token=a,b 'c'") == "+env.x.token=***");
  CHECK(without_assigned_secrets("env.x={url: http://u:p@h/, token: abc, n: 3}") ==
        "env.x={url: http://u:***@h/, token: ***, n: 3}");
  CHECK(without_assigned_secrets("env.x.headers={Authorization: 'Bearer a, b'}") ==
        "env.x.headers={Authorization: ***}");
  CHECK(without_assigned_secrets("x={password: 'it\\'s long', y: 1}") == "x={password: ***, y: 1}");
  CHECK(without_assigned_secrets("x={api_keys: [a, b], y: [c]}") == "x={api_keys: ***, y: [c]}");
  CHECK(without_assigned_secrets("env.x.token=${oc.env:T}") == "env.x.token=${oc.env:T}");
  CHECK(without_assigned_secrets("env.x.token=null") == "env.x.token=null");
  CHECK(without_assigned_secrets("policy.pad_token=<pad>") == "policy.pad_token=<pad>");
  CHECK(without_assigned_secrets("not expected: --env.x.token=abc\nRun with --help") ==
        "not expected: --env.x.token=***\nRun with --help");
}

TEST_CASE("what is kept is left out wherever it stands; a short one as a word alone") {
  keep_secret("zq7");
  keep_secret("zq7-and-more-of-it");
  keep_secret("zz");  // would be found in anything
  CHECK(without_secrets("got text 'zq7', zq7x and zq7-and-more-of-itX") == "got text '***', zq7x and ***X");
  CHECK(without_secrets("zz") == "zz");
  CHECK(without_secrets("/data/zq7/x", 8) == "/data/zq7/x");
}
