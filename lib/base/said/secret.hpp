// Secrets in what is written: which names have one for a value, and texts without them.
#pragma once
#include <string>
#include <string_view>

namespace hexad {

// What stands in the place of a secret.
inline constexpr std::string_view kMasked = "***";

// Whether the value under a key is a secret, by the words of its name: token, api_key, password, secret, Authorization,
// private-key ... Not the tokens of a model (eos_token, max_new_tokens), nor what names a variable or a file of one
// (api_key_env, token_file).
bool names_secret(std::string_view key);

// The text without the passwords of its URLs (https://user:password@host) and without the values of their query's
// parameters that names_secret() knows.
std::string without_url_secrets(std::string_view text);

// Where the secret begins in a text that is no more than a line of HTTP's headers ("X-Api-Key: abc") or a token as a
// header has it ("Bearer abc"); npos in others.
size_t header_secret(std::string_view text);

// The text of an override or of a configuration's line, "env.x.token=abc" or "{token: abc}", without the values under
// names that names_secret() knows, and without those of URLs.
std::string without_assigned_secrets(std::string_view text);

// Has without_secrets() leave out this value from now on, wherever it stands. One of fewer than eight characters only
// as a word of its own; one of fewer than three never: it would be found in anything. Any thread.
void keep_secret(std::string_view value);

// For everything that is said: messages of errors, lines of logs and of the console. Of what keep_secret() was told,
// those of at least so many characters. Any thread.
std::string without_secrets(std::string_view text, size_t least = 0);

}  // namespace hexad
