#include "lib/process/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>

extern char** environ;

namespace hexad::process {
namespace {

// Words of a name, between its underscores.
constexpr std::array<std::string_view, 22> kWords = {
    "TOKEN", "KEY",         "KEYS",  "SECRET",  "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD",
    "PASS",  "PASSPHRASE",  "AUTH",  "COOKIE",  "JWT",     "BEARER",   "PAT",       "CREDENTIAL",
    "CREDS", "CREDENTIALS", "NETRC", "PRIVKEY", "APIKEY",  "DSN"};
// With no underscore before them too.
constexpr std::array<std::string_view, 6> kEnds = {"TOKEN", "SECRET", "PASSWORD", "APIKEY", "PASSPHRASE", "PASSWD"};
constexpr std::array<std::string_view, 4> kNames = {"MYSQL_PWD", "SSHPASS", "PGPASSFILE", "GPG_AGENT_INFO"};

template <typename List>
bool holds(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// scheme://user:password@host
bool has_password(std::string_view value) {
  for (size_t at = 0; (at = value.find("://", at)) != value.npos; at += 3) {
    const std::string_view authority = value.substr(at + 3, value.find_first_of("/?# \t\n,;", at + 3) - at - 3);
    const std::string_view user = authority.substr(0, std::min(authority.rfind('@'), authority.size()));
    if (user.size() < authority.size() && user.find(':') < user.size()) return true;
  }
  return false;
}

}  // namespace

bool is_secret(std::string_view name, std::string_view value) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper.starts_with("AWS_") || upper.ends_with("CONNECTION_STRING") || holds(kNames, upper)) return true;
  for (const std::string_view end : kEnds) {
    if (upper.ends_with(end)) return true;
  }
  for (size_t at = 0; at <= upper.size();) {
    const size_t end = std::min(upper.find('_', at), upper.size());
    if (holds(kWords, std::string_view(upper).substr(at, end - at))) return true;
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
