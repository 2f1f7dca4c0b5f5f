#include "app/tracker/mlflow_rest/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::mlflow {
namespace {

constexpr const char* kRunId = "hexad.run_id";  // the tag by which a resumed run is found
// What a request may have, and a name; a value of a parameter: servers before 2.8 refuse more.
constexpr size_t kMostMetrics = 1000, kMostParameters = 100, kMostName = 250, kMostText = 500;

// MLflow takes these characters in names of metrics and parameters, and no others. A name is a path to it, which may
// not be written in two ways: an empty part, as in a//b, has _ for a slash, and one as ./ or ../ has it for the dots.
std::string name_of(const std::string& key) {
  const std::string cut(utf8_front(key, kMostName));
  std::string name = cut;
  const auto is_end = [&](size_t at) { return at >= cut.size() || cut[at] == '/'; };
  for (size_t i = 0; i < cut.size(); ++i) {
    const char c = cut[i];
    const bool is_known =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_-. /").find(c) != std::string_view::npos;
    const bool begins = i == 0 || cut[i - 1] == '/';
    if (!is_known || (c == '/' && (begins || i + 1 == cut.size()))) name[i] = '_';
    if (!begins || c != '.') continue;
    if (is_end(i + 1)) name[i] = '_';
    if (!is_end(i + 1) && cut[i + 1] == '.') name[i] = name[i + 1] = '_', ++i;
  }
  return name.empty() ? "_" : name;
}

// Another name where this one is taken: a request with one name twice is refused as a whole.
std::string untaken(const std::string& name, std::set<std::string>& taken) {
  std::string other = name;
  for (int i = 2; !taken.insert(other).second; ++i) other = fmt::format("{}_{}", name.substr(0, kMostName - 8), i);
  return other;
}

// {"a": {"b": 1}} as a.b, 1.
void flatten(const Json& value, const std::string& path,
             const std::function<void(const std::string&, const Json&)>& take) {
  if (!value.is_object() || value.empty()) return take(path, value);
  for (const auto& [key, child] : value.items()) flatten(child, path.empty() ? key : path + "." + key, take);
}

// a/b.c of the metric a/b/c where a/b is one too: in a store of files none can lie below another.
std::string beside(const std::string& key, const Json& metrics) {
  std::string name = key;
  for (size_t at = key.find('/'); at != std::string::npos; at = key.find('/', at + 1))
    if (metrics.contains(key.substr(0, at))) name[at] = '.';
  return name;
}

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string uri_of(const Json& start, const std::string& otherwise) {
  const Json& settings = start.at("settings");
  return settings.contains("tracking_uri") && settings.at("tracking_uri").is_string()
             ? settings.at("tracking_uri").get<std::string>()
             : otherwise;
}

// The path below mlflow-artifacts:/ or mlflow-artifacts://HOST/; "" of another store.
std::string served_path(const std::string& uri) {
  const std::string scheme = "mlflow-artifacts:";
  if (!uri.starts_with(scheme)) return "";
  std::string path = uri.substr(scheme.size());
  if (path.starts_with("//")) path.erase(0, std::min(path.size(), path.find('/', 2)));
  path.erase(0, std::min(path.size(), path.find_first_not_of('/')));
  return path;
}

std::string text_in(const Json& answer, std::initializer_list<const char*> path, const std::string& request) {
  const Json* at = &answer;
  for (const char* name : path) {
    if (!at->is_object() || !at->contains(name)) throw RequestFailed(request + ": no answer of MLflow's", 200, "");
    at = &at->at(name);
  }
  return at->is_string() ? at->get<std::string>() : json_text(*at);
}

std::string experiment_of(Server& server, const Json& start) {
  const std::string name = start.at("project");
  const auto known = [&] {
    return text_in(server.get("experiments/get-by-name", "experiment_name", name), {"experiment", "experiment_id"},
                   "experiments/get-by-name");
  };
  try {
    return known();
  } catch (const RequestFailed& error) {
    if (error.code != "RESOURCE_DOES_NOT_EXIST") throw;
  }
  Json body = {{"name", name}};
  if (const Json& settings = start.at("settings"); settings.contains("artifact_location"))
    body["artifact_location"] = settings.at("artifact_location");
  try {
    return text_in(server.post("experiments/create", body), {"experiment_id"}, "experiments/create");
  } catch (const RequestFailed& error) {
    if (error.code != "RESOURCE_ALREADY_EXISTS") throw;  // another run has made it in between
    return known();
  }
}

// What may fail without ending the others.
void attempt(const std::string& what, const std::function<void()>& send) {
  try {
    send();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s is left out: %s\n", what.c_str(), one_line(error.what()).c_str());
  }
}

// The elements of a list in requests of `most` at most.
void in_parts(const Json& all, size_t most, const std::function<void(const Json&)>& send) {
  for (size_t at = 0; at < all.size(); at += most) {
    Json part = Json::array();
    for (size_t i = at; i < std::min(all.size(), at + most); ++i) part.push_back(all[i]);
    send(part);
  }
}

}  // namespace

Run::Run(const Json& start, const std::string& uri, const Access& access) : server_(uri_of(start, uri), access) {
  const std::string experiment = experiment_of(server_, start);
  const Json found = server_.post(
      "runs/search", {{"experiment_ids", Json::array({experiment})},
                      {"filter", fmt::format("tags.`{}` = '{}'", kRunId, start.at("id").get<std::string>())},
                      {"max_results", 1}});
  if (!found.is_object() || !found.contains("runs") || found.at("runs").empty()) {
    create(start, experiment);
    return;
  }
  const Json& info = found.at("runs")[0].at("info");
  id_ = info.at("run_id").get<std::string>();
  artifacts_ = served_path(info.value("artifact_uri", ""));
  server_.post("runs/update", {{"run_id", id_}, {"status", "RUNNING"}});
}

void Run::create(const Json& start, const std::string& experiment) {
  const Json made =
      server_.post("runs/create", {{"experiment_id", experiment},
                                   {"run_name", start.at("name")},
                                   {"start_time", now_ms()},
                                   {"tags", Json::array({Json{{"key", kRunId}, {"value", start.at("id")}}})}});
  id_ = text_in(made, {"run", "info", "run_id"}, "runs/create");
  artifacts_ = served_path(text_in(made, {"run", "info", "artifact_uri"}, "runs/create"));
  if (artifacts_.empty())
    std::fprintf(stderr,
                 "the server does not serve artifacts (mlflow server --serve-artifacts): tables of samples and the "
                 "report are left out\n");
  log_parameters(start.at("config"));
  put_file("config.json", json_text(start.at("config"), 2));
}

void Run::log_parameters(const Json& config) {
  Json parameters = Json::array();
  std::set<std::string> taken;
  flatten(config, "", [&](const std::string& key, const Json& value) {
    const std::string text = value.is_string() ? value.get<std::string>() : json_text(value);
    parameters.push_back({{"key", untaken(name_of(key), taken)}, {"value", utf8_front(text, kMostText)}});
  });
  in_parts(parameters, kMostParameters, [&](const Json& part) {
    attempt("a part of the configuration", [&] {
      server_.post("runs/log-batch", {{"run_id", id_}, {"params", part}});
    });
  });
}

void Run::step(const Json& event) {
  const auto milliseconds = static_cast<int64_t>(event.at("time").get<double>() * 1000);
  Json metrics = Json::array();
  for (const auto& [key, value] : event.at("metrics").items()) {
    if (!value.is_number()) continue;  // one that is not finite is null
    metrics.push_back({{"key", name_of(beside(key, event.at("metrics")))},
                       {"value", value},
                       {"timestamp", milliseconds},
                       {"step", event.at("step")}});
  }
  in_parts(metrics, kMostMetrics, [&](const Json& part) {
    attempt(fmt::format("step {}", event.at("step").get<int64_t>()), [&] {
      server_.post("runs/log-batch", {{"run_id", id_}, {"metrics", part}});
    });
  });
}

void Run::samples(const Json& event) {
  const std::string name =
      fmt::format("samples/{}_step{:06}.json", event.at("name").get<std::string>(), event.at("step").get<int64_t>());
  // As MLflow's own tables are stored.
  put_file(name, json_text(Json{{"columns", event.at("columns")}, {"data", event.at("rows")}}));
}

void Run::artifact(const Json& event) {
  const std::filesystem::path path = event.at("path").get<std::string>();
  attempt(path.string(), [&] { put_file(path.filename().string(), read_file(path)); });
}

void Run::put_file(const std::string& name, std::string_view bytes) {
  if (artifacts_.empty()) return;
  attempt(name, [&] { server_.put_artifact(artifacts_ + "/" + name, bytes); });
}

void Run::end(const std::string& status) {
  const char* state = status == "finished" ? "FINISHED" : status == "interrupted" ? "KILLED" : "FAILED";
  attempt("the end of the run", [&] {
    server_.post("runs/update", {{"run_id", id_}, {"status", state}, {"end_time", now_ms()}});
  });
}

}  // namespace hexad::mlflow
