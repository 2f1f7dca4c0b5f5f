// Requests to a server of MLflow, one at a time.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hexad::mlflow {

using Json = nlohmann::ordered_json;

// What the environment says of the way to the server, by MLflow's names.
struct Access {
  std::string token;               // MLFLOW_TRACKING_TOKEN
  std::string user, password;      // MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD
  bool insecure = false;           // MLFLOW_TRACKING_INSECURE_TLS: its certificate is not looked at
  std::string certificates;        // MLFLOW_TRACKING_SERVER_CERT_PATH; "": the system's
  std::string client_certificate;  // MLFLOW_TRACKING_CLIENT_CERT_PATH
  static Access of_environment();
};

// Neither text nor place of an error holds a credential.
struct RequestFailed : std::runtime_error {
  RequestFailed(const std::string& text, long status, std::string code)
      : std::runtime_error(text), status(status), code(std::move(code)) {}
  long status;       // of HTTP; 0: there was no answer
  std::string code;  // MLflow's error_code; "" where it gave none
};

// Connections are kept alive. What may pass (no answer, status 429, 5xx) is asked again as long as the server is away;
// where it is there, for minutes, a file for seconds. A line on standard error says that an outage has begun, and one
// that it is over. One thread.
class Server {
 public:
  // `uri`: http(s)://HOST[:PORT][/PATH], with USER:PASSWORD@ at most. Throws RequestFailed.
  Server(const std::string& uri, const Access& access);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // `path`: "runs/create", of api/2.0/mlflow; what it answers. Throws RequestFailed.
  Json get(const std::string& path, const std::string& name, const std::string& value);
  Json post(const std::string& path, const Json& body);
  // A file of the server's artifacts.
  void put_artifact(const std::string& path, std::string_view bytes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    long status = 0;  // 0: none
    std::string text, problem;
    bool is_final = false;  // there was none, and there will be none
  };
  Answer once(const char* method, const std::string& url, std::string_view body, const char* type);
  bool is_there();
  bool goes_on(const Answer& answer, Clock::duration took, bool is_file);
  void tell_outage(const std::string& what, Clock::duration took, bool is_file);
  void tell_end_of_outage();
  RequestFailed failure(const Answer& answer, const char* method, const std::string& url) const;
  std::string ask(const char* method, const std::string& url, std::string_view body, const char* type);
  std::string escaped(const std::string& text, const char* kept) const;

  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string base_, shown_;
  std::optional<Clock::time_point> outage_;  // that was told: since when
};

}  // namespace hexad::mlflow
