#include "app/tracker/mlflow_rest/http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::mlflow {
namespace {

using std::chrono::milliseconds;

// A server that is away is waited for: lines stay in the queue of the run meanwhile, and the run ends this program when
// it ends. There is a bound all the same, for one that is fed from a file.
constexpr std::chrono::hours kLongest(24);
// Where the server is there, and one request fails again and again: it may pass still. A file is given up at once,
// for metrics wait behind it, and a store that takes one no more mostly takes none.
constexpr std::chrono::minutes kLongestOfOne(5);
constexpr std::chrono::seconds kLongestOfFile(3);
constexpr milliseconds kFirstPause(250), kLongestPause(5000);  // doubled in between
constexpr milliseconds kUntold(1000);                          // an outage that is shorter is no news
constexpr long kConnectS = 10, kStallS = 30;                   // without a byte
constexpr size_t kMostAnswer = size_t{16} << 20, kMostShown = 300;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

size_t keep(const char* bytes, size_t size, size_t count, void* text) {
  auto& answer = *static_cast<std::string*>(text);
  if (answer.size() + size * count > kMostAnswer) return 0;
  answer.append(bytes, size * count);
  return size * count;
}

bool may_pass(long status) { return status == 0 || status == 429 || status >= 500; }

// What no time mends: the address, the certificates, an answer without end.
bool is_final(CURLcode code) {
  return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_PEER_FAILED_VERIFICATION ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_WRITE_ERROR;
}

}  // namespace

Access Access::of_environment() {
  const std::string insecure = variable("MLFLOW_TRACKING_INSECURE_TLS");
  return {.token = variable("MLFLOW_TRACKING_TOKEN"),
          .user = variable("MLFLOW_TRACKING_USERNAME"),
          .password = variable("MLFLOW_TRACKING_PASSWORD"),
          .insecure = insecure == "true" || insecure == "1",
          .certificates = variable("MLFLOW_TRACKING_SERVER_CERT_PATH"),
          .client_certificate = variable("MLFLOW_TRACKING_CLIENT_CERT_PATH")};
}

struct Server::Handle {
  CURL* curl = nullptr;
  curl_slist* json = nullptr;
  curl_slist* bytes = nullptr;
  ~Handle() {
    curl_slist_free_all(json);
    curl_slist_free_all(bytes);
    curl_easy_cleanup(curl);
  }
};

Server::Server(const std::string& uri, const Access& access) : handle_(std::make_unique<Handle>()), base_(uri) {
  while (base_.ends_with('/')) base_.pop_back();
  const size_t host = base_.find("://") + 3, at = base_.substr(0, base_.find('/', host)).rfind('@');
  shown_ = at == std::string::npos ? base_ : base_.substr(0, host) + base_.substr(at + 1);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* curl = handle_->curl = curl_easy_init();
  if (!curl) throw RequestFailed("libcurl cannot be used", 0, "");
  const auto header = [](curl_slist*& list, const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  header(handle_->json, "Content-Type: application/json");
  header(handle_->bytes, "Content-Type: application/octet-stream");
  for (curl_slist** list : {&handle_->json, &handle_->bytes}) {
    header(*list, "Expect:");  // no round trip before a body
    if (!access.token.empty() && access.user.empty()) header(*list, "Authorization: Bearer " + access.token);
  }
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectS);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallS);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
  if (!access.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, access.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, access.password.c_str());
  }
  if (access.insecure) {
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!access.certificates.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, access.certificates.c_str());
  if (!access.client_certificate.empty()) curl_easy_setopt(curl, CURLOPT_SSLCERT, access.client_certificate.c_str());
}

Server::~Server() = default;

Json Server::get(const std::string& path, const std::string& name, const std::string& value) {
  const std::string url = fmt::format("/api/2.0/mlflow/{}?{}={}", path, name, escaped(value, ""));
  return try_parse_json<Json>(ask("GET", url, {}, ""));
}

Json Server::post(const std::string& path, const Json& body) {
  return try_parse_json<Json>(ask("POST", "/api/2.0/mlflow/" + path, json_text(body), "json"));
}

void Server::put_artifact(const std::string& path, std::string_view bytes) {
  ask("PUT", "/api/2.0/mlflow-artifacts/artifacts/" + escaped(path, "/"), bytes, "bytes");
}

std::string Server::escaped(const std::string& text, const char* kept) const {
  std::string result;
  for (const char character : text) {
    if (std::string_view(kept).find(character) != std::string_view::npos) {
      result += character;
      continue;
    }
    char* one = curl_easy_escape(handle_->curl, &character, 1);
    result += one ? one : "";
    curl_free(one);
  }
  return result;
}

// What is asked has no effect there.
bool Server::is_there() { return !may_pass(once("GET", "/health", {}, "").status); }

// Whether what has failed for so long is to be asked again.
bool Server::goes_on(const Answer& answer, Clock::duration took, bool is_file) {
  if (answer.is_final || !may_pass(answer.status)) return false;
  const milliseconds least = is_file ? milliseconds(kLongestOfFile) : kLongestOfOne;
  return took < least || (took < kLongest && !is_there());
}

void Server::tell_outage(const std::string& what, Clock::duration took, bool is_file) {
  if (outage_ || took < (is_file ? milliseconds(kLongestOfFile) : kUntold)) return;
  outage_ = Clock::now() - took;
  std::fprintf(stderr, "%s. It is asked again until it answers, and what comes meanwhile waits\n", what.c_str());
}

void Server::tell_end_of_outage() {
  if (!outage_) return;
  const double took_s = std::chrono::duration<double>(Clock::now() - *outage_).count();
  std::fprintf(stderr, "%s answers again, after %.3g s\n", shown_.c_str(), took_s);
  outage_.reset();
}

Server::Answer Server::once(const char* method, const std::string& url, std::string_view body, const char* type) {
  CURL* curl = handle_->curl;
  Answer answer;
  char problem[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_URL, (base_ + url).c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.text);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
  const std::string_view kind = type;
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, kind == "bytes" ? handle_->bytes : handle_->json);
  if (kind.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
  } else {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK)
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  else
    answer.problem = *problem ? problem : curl_easy_strerror(code), answer.is_final = is_final(code);
  return answer;
}

RequestFailed Server::failure(const Answer& answer, const char* method, const std::string& url) const {
  const Json said = try_parse_json<Json>(answer.text);
  const auto member = [&](const char* name) {
    return said.is_object() && said.contains(name) && said.at(name).is_string() ? said.at(name).get<std::string>()
                                                                                : std::string();
  };
  std::string why = answer.status == 0 ? answer.problem : fmt::format("status {}", answer.status);
  if (const std::string message = member("message"); !message.empty()) why += ": " + message;
  const std::string place = shown_ + url.substr(0, url.find('?'));
  return {fmt::format("{} {}: {}", method, place, one_line(shortened(why, kMostShown))), answer.status,
          member("error_code")};
}

std::string Server::ask(const char* method, const std::string& url, std::string_view body, const char* type) {
  const bool is_file = std::string_view(type) == "bytes";
  const Clock::time_point began = Clock::now();
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    Answer answer = once(method, url, body, type);
    if (!may_pass(answer.status)) tell_end_of_outage();
    if (answer.status >= 200 && answer.status < 300) return std::move(answer.text);
    const RequestFailed failed = failure(answer, method, url);
    const Clock::duration took = Clock::now() - began;
    if (!goes_on(answer, took, is_file)) throw failed;
    tell_outage(failed.what(), took, is_file);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace hexad::mlflow
