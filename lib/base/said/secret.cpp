#include "lib/base/said/secret.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "lib/base/said/secret_signs.hpp"

namespace hexad {
namespace {

constexpr size_t kLeastAnywhere = 8, kLeast = 3;  // characters of a secret that is left out

bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool ends_in_any(std::string_view name, const auto& list) {
  return std::ranges::any_of(list, [&](std::string_view words) { return ends_in_words(name, words); });
}

// Where the value that begins at `at` ends: before what can follow a value in a list or a mapping.
size_t value_end(std::string_view text, size_t at) {
  if (at < text.size() && (text[at] == '\'' || text[at] == '"')) {
    const size_t close = text.find(text[at], at + 1);
    at = close == text.npos ? text.size() : close + 1;
  }
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && --depth < 0) return at;
    if (depth == 0 && (c == ',' || c == '\n')) return at;
  }
  return at;
}

bool is_name_char(char c) { return is_word_char(c) || c == '.' || c == '-'; }

// What a query has for secrets, and no key of a configuration: key, sig, X-Amz-Signature ...
bool signs(std::string_view parameter) {
  static constexpr std::array<std::string_view, 5> kSigns = {"key", "sig", "signature", "auth", "awsaccess_key_id"};
  return ends_in_any(words_of(parameter), kSigns);
}

std::string masked_query(std::string_view query) {
  std::string out;
  while (!query.empty()) {
    const size_t end = std::min(query.find_first_of("&;"), query.size());
    const std::string_view pair = query.substr(0, end);
    const size_t equal = pair.find('=');
    const bool secret = equal != pair.npos && (names_secret(pair.substr(0, equal)) || signs(pair.substr(0, equal)));
    out += secret ? std::string(pair.substr(0, equal + 1)).append(kMasked) : std::string(pair);
    if (end < query.size()) out += query[end];
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return out;
}

// The user and password at the beginning of what is behind "://" go to `out`, masked, and out of `rest`.
void mask_user(std::string_view& rest, std::string& out) {
  const std::optional<UserInfo> info = user_info(rest);
  if (!info) return;
  if (info->password) out.append(info->user) += ':';
  out += kMasked;
  rest.remove_prefix(info->end);
}

// A URL from its host on.
std::string with_masked_query(std::string_view url) {
  const size_t query = url.find('?');
  if (query == url.npos) return std::string(url);
  const size_t fragment = std::min(url.find('#', query), url.size());
  return std::string(url.substr(0, query + 1))
      .append(masked_query(url.substr(query + 1, fragment - query - 1)))
      .append(url.substr(fragment));
}

// Values that keep_secret() was told. Never destroyed: errors are made until the very end.
struct Kept {
  std::mutex mutex;
  std::vector<std::string> values;  // longest first: one may be a part of another
  std::atomic<bool> any = false;
};
Kept& kept() {
  static auto* const it = new Kept;
  return *it;
}

bool is_alone(std::string_view text, size_t at, size_t size) {
  return (at == 0 || !is_word_char(text[at - 1])) && (at + size == text.size() || !is_word_char(text[at + size]));
}

void leave_out(const std::string& value, std::string& text) {
  for (size_t at = 0; (at = text.find(value, at)) != text.npos;) {
    if (value.size() < kLeastAnywhere && !is_alone(text, at, value.size())) {
      ++at;
      continue;
    }
    text.replace(at, value.size(), kMasked);
    at += kMasked.size();
  }
}

}  // namespace

bool names_secret(std::string_view key) {
  // Beside secret_words(): the keys that are no words of a model's or of a mapping's.
  static constexpr std::array<std::string_view, 12> kKeys = {
      "account_key", "connection_string", "jwt",        "pat",         "api_keys", "api_key",
      "access_key",  "access_key_id",     "secret_key", "private_key", "auth_key", "signing_key"};
  // What a model has for tokens.
  static constexpr std::array<std::string_view, 12> kOfModels = {
      "eos_token",  "bos_token", "pad_token",  "unk_token",   "sep_token", "cls_token",
      "mask_token", "per_token", "stop_token", "image_token", "end_token", "audio_token"};
  // Every key of a configuration comes here; few end as one of these does.
  constexpr std::string_view kEnds = "en ys ey id et ts rd ds se wd al ls ie on ng wt at";
  if (key.size() < 2) return false;
  const char end[] = {static_cast<char>(key[key.size() - 2] | 0x20), static_cast<char>(key.back() | 0x20)};
  if (kEnds.find({end, 2}) == kEnds.npos) return false;
  const std::string name = words_of(key);
  return (ends_in_any(name, secret_words()) || ends_in_any(name, kKeys)) && !ends_in_any(name, kOfModels);
}

std::string without_url_secrets(std::string_view text) {
  constexpr std::string_view kScheme = "://", kEnds = " \t\r\n'\"`<>{}|\\^)],";
  std::string out;
  for (size_t at; (at = text.find(kScheme)) != text.npos;) {
    out.append(text.substr(0, at + kScheme.size()));
    text.remove_prefix(at + kScheme.size());
    mask_user(text, out);
    const size_t end = std::min(text.find_first_of(kEnds), text.size());
    out += with_masked_query(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out.append(text);
}

size_t header_secret(std::string_view text) {
  constexpr std::string_view kScheme = "Bearer ";
  const size_t colon = text.find(": ");
  const bool named = colon != text.npos && std::ranges::all_of(text.substr(0, colon), is_name_char) &&
                     names_secret(text.substr(0, colon));
  if (!named && !text.starts_with(kScheme)) return text.npos;
  const size_t at = named ? colon + 2 : kScheme.size();
  const bool is_line = text.find_first_of(named ? "\r\n{" : " \t\r\n{", at) == text.npos;
  return at < text.size() && is_line ? at : text.npos;
}

std::string without_assigned_secrets(std::string_view text) {
  std::string out;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    if (!is_name_char(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_name_char(text[at])) ++at;
    const std::string_view name = text.substr(begin, at - begin);
    size_t value = at;
    while (value < text.size() && (text[value] == ' ' || text[value] == '\'' || text[value] == '"')) ++value;
    if (value >= text.size() || (text[value] != '=' && text[value] != ':') || !names_secret(name)) continue;
    const bool is_override = text[value] == '=';  // all behind it is the value
    for (++value; value < text.size() && text[value] == ' ';) ++value;
    const size_t end = is_override ? std::min(text.find('\n', value), text.size()) : value_end(text, value);
    const std::string_view said = text.substr(value, end - value);
    at = end;
    // A reference to where it stands tells nothing, and neither does nothing.
    if (said.empty() || said == "null" || said.starts_with("${") || said.starts_with("'${")) continue;
    out.append(text.substr(from, value - from)).append(kMasked);
    from = end;
  }
  return without_url_secrets(out.append(text.substr(from)));
}

void keep_secret(std::string_view value) {
  if (value.size() < kLeast || value == kMasked) return;
  Kept& all = kept();
  const std::scoped_lock lock(all.mutex);
  if (std::ranges::find(all.values, value) != all.values.end()) return;
  const auto place =
      std::ranges::find_if(all.values, [&](const std::string& each) { return each.size() < value.size(); });
  all.values.emplace(place, value);
  all.any = true;
}

std::string without_secrets(std::string_view text, size_t least) {
  std::string out = without_url_secrets(text);
  Kept& all = kept();
  if (!all.any) return out;
  const std::scoped_lock lock(all.mutex);
  for (const std::string& value : all.values)
    if (value.size() >= least) leave_out(value, out);
  return out;
}

}  // namespace hexad
