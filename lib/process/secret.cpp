#include "lib/process/secret.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "lib/base/said/secret_signs.hpp"

extern char** environ;

namespace hexad::process {
namespace {

// Beside those of secret_words(): better that a program misses a variable than that it has a secret.
constexpr std::array<std::string_view, 11> kMoreWords = {"key", "keys",  "pass",  "auth",    "jwt", "bearer",
                                                         "pat", "creds", "netrc", "privkey", "dsn"};
constexpr std::array<std::string_view, 4> kNames = {"mysql_pwd", "sshpass", "pgpassfile", "gpg_agent_info"};

template <typename List>
bool holds(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool has_password(std::string_view value) {
  for (size_t at = 0; (at = value.find("://", at)) != value.npos;) {
    at += 3;
    const std::optional<UserInfo> info = user_info(value.substr(at));
    if (info && info->password) return true;
  }
  return false;
}

}  // namespace

bool is_secret(std::string_view name, std::string_view value) {
  std::string whole(name);
  std::ranges::replace(whole, '.', '_');  // words_of() looks behind the last dot alone
  const std::string words = words_of(whole);
  if (words.starts_with("aws_") || words.ends_with("connection_string") || holds(kNames, words)) return true;
  for (const std::string_view end : secret_words()) {
    if (words.ends_with(end)) return true;  // PGPASSWORD: with no underscore before it, too
  }
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find('_', at), words.size());
    const std::string_view word = std::string_view(words).substr(at, end - at);
    if (holds(secret_words(), word) || holds(kMoreWords, word)) return true;
    at = end + 1;
  }
  return has_password(value);
}

std::vector<std::string> secrets_of_ours(const std::vector<std::string>& passed) {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t end = std::min(text.find('='), text.size());
    const std::string_view name = text.substr(0, end);
    if (is_secret(name, text.substr(std::min(end + 1, text.size()))) && !holds(passed, name)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hexad::process
