#include "app/tracker/mlflow_rest/http.hpp"

#include <curl/curl.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::mlflow {
namespace {

constexpr int kAttempts = 4;
constexpr auto kFirstPause = std::chrono::milliseconds(500);  // doubled
constexpr long kConnectS = 10, kStallS = 30;                  // without a byte
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
    answer.problem = *problem ? problem : curl_easy_strerror(code);
  return answer;
}

std::string Server::ask(const char* method, const std::string& url, std::string_view body, const char* type) {
  auto pause = kFirstPause;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    Answer answer = once(method, url, body, type);
    if (answer.status >= 200 && answer.status < 300) return std::move(answer.text);
    if (may_pass(answer.status) && attempt < kAttempts) {
      std::this_thread::sleep_for(pause);
      continue;
    }
    const Json said = try_parse_json<Json>(answer.text);
    const auto member = [&](const char* name) {
      return said.is_object() && said.contains(name) && said.at(name).is_string() ? said.at(name).get<std::string>()
                                                                                  : std::string();
    };
    std::string why = answer.status == 0 ? answer.problem : fmt::format("status {}", answer.status);
    if (const std::string message = member("message"); !message.empty()) why += ": " + message;
    const std::string place = shown_ + url.substr(0, url.find('?'));
    throw RequestFailed(fmt::format("{} {}: {}", method, place, one_line(shortened(why, kMostShown))), answer.status,
                        member("error_code"));
  }
}

}  // namespace hexad::mlflow
