#include "lib/base/said/secret_signs.hpp"

#include <algorithm>
#include <array>

namespace hexad {

std::string words_of(std::string_view name) {
  std::string words;
  for (size_t i = name.rfind('.') == name.npos ? 0 : name.rfind('.') + 1; i < name.size(); ++i) {
    const char c = name[i];
    const bool upper = c >= 'A' && c <= 'Z', hump = upper && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (hump) words += '_';
    words += upper ? static_cast<char>(c - 'A' + 'a') : c == '-' || c == ' ' ? '_' : c;
  }
  return words;
}

bool ends_in_words(std::string_view words, std::string_view last) {
  return words.ends_with(last) && (words.size() == last.size() || words[words.size() - last.size() - 1] == '_');
}

std::span<const std::string_view> secret_words() {
  static constexpr std::array<std::string_view, 12> kWords = {"token",      "secret",      "secrets", "password",
                                                              "passwords",  "passphrase",  "passwd",  "apikey",
                                                              "credential", "credentials", "cookie",  "authorization"};
  return kWords;
}

std::optional<UserInfo> user_info(std::string_view url) {
  const std::string_view authority = url.substr(0, url.find_first_of("/?# \t\r\n'\"`<>"));
  const size_t end = authority.rfind('@');
  if (end == authority.npos) return std::nullopt;
  const std::string_view all = authority.substr(0, end);
  const size_t colon = all.find(':');
  if (colon == all.npos) return UserInfo{all, std::nullopt, end};
  return UserInfo{all.substr(0, colon), all.substr(colon + 1), end};
}

}  // namespace hexad
