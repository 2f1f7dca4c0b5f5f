// By what a secret is known: the words of its name, and its place in a URL. For what is written (secret.hpp) and for
// what programs in a sandbox are given (lib/process/secret.hpp).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hexad {

// The last part of a dotted name in lower case, its words apart by '_': "env.x.hubToken" is hub_token.
std::string words_of(std::string_view name);

// Whether the words end in these: api_key ends in key, monkey does not.
bool ends_in_words(std::string_view words, std::string_view last);

// The words that name a secret by themselves, in lower case: token, password, cookie ...
std::span<const std::string_view> secret_words();

// Who a URL says that it is for.
struct UserInfo {
  std::string_view user;                     // a token perhaps, without a password
  std::optional<std::string_view> password;  // behind the user's colon
  size_t end = 0;                            // where its '@' is
};

// Of a URL from behind its "://" on, whatever follows it in the text: "user:password@host". A password is read with
// what should be written as %2C and the like (commas, brackets, '^', '|'); slashes, '?', '#', blanks and quotes end it.
std::optional<UserInfo> user_info(std::string_view url);

}  // namespace hexad
