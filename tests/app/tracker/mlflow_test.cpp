// hexad-mlflow against a stand-in for a server of MLflow: what it asks, and what it makes of refusals.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/plugins/environment/fake_server.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
using fake_server::Reply;
using fake_server::Request;
using fake_server::Server;

namespace {

Json error(const std::string& code) { return {{"error_code", code}, {"message", "says " + code}}; }

// The line of the request, "POST /api/2.0/mlflow/runs/create".
std::string asked(const Request& request) { return request.head.substr(0, request.head.find(" HTTP/")); }

// An empty server: it has no experiment and no run.
Reply empty_server(const Request& request) {
  const std::string what = asked(request);
  const auto is = [&](const char* part) { return contains(what, part); };
  if (is("get-by-name")) return {404, error("RESOURCE_DOES_NOT_EXIST").dump()};
  if (is("experiments/create")) return {200, R"({"experiment_id": "7"})"};
  if (is("runs/create"))
    return {200, R"({"run": {"info": {"run_id": "r1", "artifact_uri": "mlflow-artifacts:/7/r1/artifacts"}}})"};
  return {200, "{}"};
}

Json start(const std::string& uri, const Json& config = {{"grpo", {{"seed", 1}}}}) {
  return {{"event", "start"},
          {"id", "the-id"},
          {"project", "a project"},
          {"name", "the-name"},
          {"resumed_at", 0},
          {"log_dir", "/logs"},
          {"settings", {{"tracking_uri", uri}}},
          {"config", config}};
}

Json step(int number, const Json& metrics) {
  return {{"event", "step"}, {"step", number}, {"time", 1764246000.5}, {"metrics", metrics}};
}

const Json kEnd = {{"event", "end"}, {"status", "finished"}};

std::string tracker() { return (toy::hexad().parent_path() / "hexad-mlflow").string(); }

std::string text_of(const std::vector<Json>& events) {
  std::string text;
  for (const Json& event : events) text += event.dump() + "\n";
  return text;
}

Ended send(const std::vector<Json>& events, const std::vector<std::string>& environment = {}) {
  std::vector<std::string> arguments = environment;
  arguments.push_back(tracker());
  return Program({"env"}, arguments, text_of(events)).wait();
}

std::vector<Json> bodies(const Server& server, const std::string& path) {
  std::vector<Json> found;
  for (const Request& request : server.requests())
    if (contains(asked(request), path)) found.push_back(Json::parse(request.body));
  return found;
}

std::vector<std::string> all_asked(const Server& server) {
  std::vector<std::string> all;
  for (const Request& request : server.requests()) all.push_back(asked(request));
  return all;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run becomes one of MLflow: experiment, parameters, metrics, tables, the report, its end") {
  const TempDir dir;
  const Server server([](const Request& request, int) { return empty_server(request); });
  const auto page = dir.write("report.html", "<page>");
  const Json table = {{"event", "samples"},
                      {"step", 3},
                      {"name", "train_data"},
                      {"columns", Json::parse(R"(["a"])")},
                      {"rows", Json::parse(R"([["ü"]])")}};
  const Ended run = send({start(server.url("/base/")),
                          Json{{"event", "of a later version"}},
                          step(3, {{"train/reward", 0.5}, {"pass@k", 1}, {"pass@k/x", 2}, {"train/loss", nullptr}}),
                          table,
                          {{"event", "artifact"}, {"name", "report"}, {"path", page.string()}},
                          kEnd});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  const std::string api = "/base/api/2.0/mlflow/",
                    files = "PUT /base/api/2.0/mlflow-artifacts/artifacts/7/r1/artifacts/";
  CHECK(all_asked(server) ==
        std::vector<std::string>{"GET " + api + "experiments/get-by-name?experiment_name=a%20project",
                                 "POST " + api + "experiments/create", "POST " + api + "runs/search",
                                 "POST " + api + "runs/create", "POST " + api + "runs/log-batch", files + "config.json",
                                 "POST " + api + "runs/log-batch", files + "samples/train_data_step000003.json",
                                 files + "report.html", "POST " + api + "runs/update"});
  CHECK(bodies(server, "experiments/create")[0] == Json{{"name", "a project"}});
  const Json search = bodies(server, "runs/search")[0], made = bodies(server, "runs/create")[0];
  CHECK(search.at("experiment_ids").dump() == R"(["7"])");
  CHECK(search.at("filter") == "tags.`hexad.run_id` = 'the-id'");
  CHECK(made.at("run_name") == "the-name");
  CHECK(made.at("tags").dump() == R"([{"key":"hexad.run_id","value":"the-id"}])");
  const std::vector<Json> batches = bodies(server, "log-batch");
  CHECK(batches[0].dump() == R"({"run_id":"r1","params":[{"key":"grpo.seed","value":"1"}]})");
  Json metrics = Json::array();
  metrics.push_back({{"key", "train/reward"}, {"value", 0.5}, {"timestamp", 1764246000500}, {"step", 3}});
  metrics.push_back({{"key", "pass_k"}, {"value", 1}, {"timestamp", 1764246000500}, {"step", 3}});
  metrics.push_back({{"key", "pass_k.x"}, {"value", 2}, {"timestamp", 1764246000500}, {"step", 3}});
  CHECK(batches[1] == Json{{"run_id", "r1"}, {"metrics", metrics}});
  const std::vector<Request> requests = server.requests();
  CHECK(requests[7].body == R"({"columns":["a"],"data":[["ü"]]})");
  CHECK(requests[8].body == "<page>");
  const Json end = bodies(server, "runs/update")[0];
  CHECK(end.at("status") == "FINISHED");
  CHECK(end.at("end_time").get<int64_t>() >= made.at("start_time").get<int64_t>());
}

TEST_CASE("many metrics and parameters are several requests, and long values are cut") {
  const Server server([](const Request& request, int) { return empty_server(request); });
  Json metrics, config;
  for (int i = 0; i < 2500; ++i) metrics[fmt::format("m{}", i)] = i;
  for (int i = 0; i < 250; ++i) config[fmt::format("k{}", i)] = std::string(600, 'x');
  const Ended run = send({start(server.url(), config), step(1, metrics), kEnd});
  CHECK_MESSAGE(run.code == 0, run.err);
  std::vector<size_t> parts, sizes;
  for (const Json& batch : bodies(server, "log-batch")) {
    if (batch.contains("params")) parts.push_back(batch.at("params").size());
    if (batch.contains("metrics")) sizes.push_back(batch.at("metrics").size());
  }
  CHECK(parts == std::vector<size_t>{100, 100, 50});
  CHECK(sizes == std::vector<size_t>{1000, 1000, 500});
  CHECK(bodies(server, "log-batch")[0].at("params")[0].at("value") == std::string(500, 'x'));
}

TEST_CASE("names are what MLflow takes: characters, lengths, paths in their one form, no parameter twice") {
  const Server server([](const Request& request, int) { return empty_server(request); });
  const std::string far(300, 'x');
  Json metrics, config;
  for (const char* name :
       {"a//b", "/a", "b/", ".", "..", "a/../b", "a/./b", "a/.b", "..a", "...", "///", "a:b", "\u00e9"})
    metrics[name] = 1;
  metrics[far] = 1;
  config = {{"p@k", 1}, {"p_k", 2}, {"p:k", 3}, {far + "1", 4}, {far + "2", 5}};
  const Ended run = send({start(server.url(), config), step(1, metrics), step(2, {{"", 1}}), kEnd});
  CHECK_MESSAGE(run.code == 0, run.err);
  const std::vector<Json> batches = bodies(server, "log-batch");
  REQUIRE(batches.size() == 3);
  std::vector<std::string> parameters;
  std::set<std::string> names;
  for (const Json& each : batches[0].at("params")) parameters.push_back(each.at("key"));
  for (const Json& each : batches[1].at("metrics")) names.insert(each.at("key"));
  CHECK(parameters == std::vector<std::string>{"p_k", "p_k_2", "p_k_3", far.substr(0, 250), far.substr(0, 242) + "_2"});
  CHECK(names == std::set<std::string>{"a/_b", "_a", "b_", "_", "__", "a/__/b", "a/_/b", "a/.b", "__a", "__.", "___",
                                       "a_b", far.substr(0, 250)});
  CHECK(batches[2].at("metrics")[0].at("key") == "_");
}

TEST_CASE("a resumed run goes on as the same run") {
  const Server server([](const Request& request, int) -> Reply {
    if (contains(asked(request), "get-by-name")) return {200, R"({"experiment": {"experiment_id": "7"}})"};
    if (contains(asked(request), "runs/search"))
      return {200,
              R"({"runs": [{"info": {"run_id": "r9", "artifact_uri": "mlflow-artifacts://h:1/7/r9/artifacts"}}]})"};
    return {200, "{}"};
  });
  const Ended run = send({start(server.url()),
                          step(4, {{"m", 1}}),
                          {{"event", "samples"},
                           {"step", 4},
                           {"name", "t"},
                           {"columns", Json::parse(R"(["a"])")},
                           {"rows", Json::parse("[[1]]")}},
                          {{"event", "end"}, {"status", "interrupted"}}});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(bodies(server, "runs/create").empty());
  const std::vector<Json> updates = bodies(server, "runs/update");
  REQUIRE(updates.size() == 2);
  CHECK(updates[0] == Json{{"run_id", "r9"}, {"status", "RUNNING"}});
  CHECK(updates[1].at("status") == "KILLED");
  CHECK(bodies(server, "log-batch")[0].at("run_id") == "r9");
  CHECK(contains(all_asked(server)[4], "artifacts/7/r9/artifacts/samples/t_step000004.json"));
}

TEST_CASE("credentials go to the server, and nowhere else") {
  const Server server([](const Request& request, int) -> Reply {
    return contains(asked(request), "runs/log-batch") ? Reply{400, error("BAD").dump()} : empty_server(request);
  });
  const auto heads = [&](const Ended& run) {
    INFO(run.err);
    CHECK(run.code == 0);
    SAYS(run.err, "step 1 is left out: POST http://127.0.0.1:");
    for (const char* secret : {"s3cret", "czNjcmV0", "dXNlcjpzM2NyZXQ="}) CHECK_FALSE(contains(run.err, secret));
    return server.requests().back().head;
  };
  const std::vector<Json> events = {start(server.url()), step(1, {{"m", 1}}), kEnd};
  CHECK(contains(heads(send(events, {"MLFLOW_TRACKING_TOKEN=s3cret"})), "Authorization: Bearer s3cret\r\n"));
  const std::string basic = "Authorization: Basic dXNlcjpzM2NyZXQ=\r\n";  // user:s3cret
  CHECK(contains(heads(send(events, {"MLFLOW_TRACKING_USERNAME=user", "MLFLOW_TRACKING_PASSWORD=s3cret"})), basic));
  const std::string url = "http://user:s3cret@" + server.url().substr(7);
  CHECK(contains(heads(send({start(url), step(1, {{"m", 1}}), kEnd})), basic));
  CHECK_FALSE(contains(heads(send(events)), "Authorization"));
}

TEST_CASE("what may pass is asked again; what is refused of a step is left out with a line") {
  std::map<std::string, int> times;
  const Server server([&](const Request& request, int) -> Reply {
    const std::string what = asked(request);
    if (contains(what, "runs/create") && times["create"]++ < 2) return {503, "busy"};
    if (contains(what, "runs/log-batch") && contains(request.body, "\"step\":2")) return {400, error("BAD").dump()};
    if (contains(what, "runs/log-batch") && contains(request.body, "\"step\":3") && times["three"]++ == 0)
      return {0, "", "", 0, true};
    return empty_server(request);
  });
  const Ended run = send({start(server.url()), step(2, {{"m", 1}}), step(3, {{"m", 2}}), kEnd});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(bodies(server, "runs/create").size() == 3);
  SAYS(run.err, "step 2 is left out: POST " + server.url("/api/2.0/mlflow/runs/log-batch: status 400: says BAD\n"));
  CHECK_FALSE(contains(run.err, "step 3"));
  CHECK(bodies(server, "runs/update")[0].at("status") == "FINISHED");
}

TEST_CASE("a server that takes no run ends it with its own words, and so does one that cannot be") {
  const Server server([](const Request&, int) -> Reply { return {403, error("PERMISSION_DENIED").dump()}; });
  const Ended refused = send({start(server.url()), kEnd});
  CHECK(refused.code == 1);
  CHECK(refused.err ==
        "GET " + server.url("/api/2.0/mlflow/experiments/get-by-name") + ": status 403: says PERMISSION_DENIED\n");
  const Ended nowhere = send({start("http://127.0.0.1:99999"), kEnd});
  CHECK(nowhere.code == 1);
  SAYS(nowhere.err, "GET http://127.0.0.1:99999/api/2.0/mlflow/experiments/get-by-name: ");
  const Server other([](const Request&, int) -> Reply { return {200, "<html>"}; });
  SAYS(send({start(other.url()), kEnd}).err, "experiments/get-by-name: no answer of MLflow's\n");
}

TEST_CASE("a run that is killed failed; one without served artifacts says so once") {
  const Server server([](const Request& request, int) -> Reply {
    if (!contains(asked(request), "runs/create")) return empty_server(request);
    return {200, R"({"run": {"info": {"run_id": "r1", "artifact_uri": "s3://bucket/7/r1"}}})"};
  });
  const Json table = {{"event", "samples"},
                      {"step", 1},
                      {"name", "t"},
                      {"columns", Json::parse(R"(["a"])")},
                      {"rows", Json::parse("[[1]]")}};
  const Ended run = send({start(server.url()), table, table});
  CHECK(run.code == 0);
  CHECK(run.err ==
        "the server does not serve artifacts (mlflow server --serve-artifacts): tables of samples and the report are "
        "left out\n");
  CHECK(bodies(server, "runs/update")[0].at("status") == "FAILED");
}

TEST_CASE("a run whose tracking_uri is a server's needs no Python") {
  const TempDir dir;
  const Server server([](const Request& request, int) { return empty_server(request); });
  const Ended run = toy::run(
      train(dir, {"++logger.mlflow_enabled=true", "++logger.mlflow={tracking_uri: '" + server.url("") + "'}",
                  "++logger.tracker_python=/no/such/python", "grpo.max_num_steps=4", "checkpointing.enabled=false"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_FALSE(contains(run.err, "tracker mlflow:"));
  std::map<int, size_t> told;
  for (const Json& batch : bodies(server, "log-batch"))
    if (batch.contains("metrics")) told[batch.at("metrics")[0].at("step")] += batch.at("metrics").size();
  const std::vector<Json> logged = lines(dir / "logs/exp_001/metrics.jsonl");
  REQUIRE(told.size() == 4);
  for (const Json& line : logged) {
    const auto numbers = std::count_if(line.begin(), line.end(), [](const Json& value) { return value.is_number(); });
    CHECK(told.at(line.at("step")) == static_cast<size_t>(numbers) - 2);  // without step and time
  }
  CHECK(bodies(server, "runs/update").back().at("status") == "FINISHED");
}

TEST_CASE(
    "an outage loses no metrics, at the start or later; a file that alone is not taken holds them up for seconds") {
  constexpr int kFailures = 4;
  std::atomic<int> busy = 0;
  const Server late([](const Request& request, int number) {
    return number < kFailures ? Reply{0, "", "", 0, true} : empty_server(request);
  });
  const Server away([&](const Request& request, int) -> Reply {
    const bool is_second = contains(request.body, "\"step\":2");
    return is_second && busy++ < kFailures ? Reply{503, error("BUSY").dump()} : empty_server(request);
  });
  const Server full([](const Request& request, int) -> Reply {
    return asked(request).starts_with("PUT") ? Reply{500, error("FULL").dump()} : empty_server(request);
  });
  std::vector<std::unique_ptr<Program>> programs;  // beside each other: each waits for seconds
  std::vector<Ended> ended;
  const Server* const servers[] = {&late, &away, &full};
  for (const Server* server : servers)
    programs.push_back(std::make_unique<Program>(
        std::vector{tracker()}, std::vector<std::string>(),
        text_of({start(server->url()), step(1, {{"m", 1}}), step(2, {{"m", 2}}), step(3, {{"m", 3}}), kEnd})));
  for (const auto& program : programs) ended.push_back(program->wait());
  for (size_t i = 0; i < ended.size(); ++i) {
    INFO(ended[i].err);
    CHECK(ended[i].code == 0);
    std::vector<int> steps;
    for (const Json& batch : bodies(*servers[i], "log-batch"))
      if (batch.contains("metrics")) steps.push_back(batch.at("metrics")[0].at("step"));
    CHECK(steps == (i == 1 ? std::vector<int>{1, 2, 2, 2, 2, 2, 3} : std::vector<int>{1, 2, 3}));
    CHECK((std::ranges::count(ended[i].err, '\n') == (i == 2 ? 1 : 2)));
  }
  const std::string again = ". It is asked again until it answers, and what comes meanwhile waits\n";
  SAYS(ended[0].err, "GET " + late.url("/api/2.0/mlflow/experiments/get-by-name: Empty reply from server") + again);
  SAYS(ended[0].err, "\n" + late.url("") + " answers again, after ");
  SAYS(ended[1].err, "POST " + away.url("/api/2.0/mlflow/runs/log-batch: status 503: says BUSY") + again);
  CHECK(ended[2].err.starts_with("config.json is left out: PUT http://127.0.0.1:"));
  SAYS(ended[2].err, "artifacts/7/r1/artifacts/config.json: status 500: says FULL\n");
}

TEST_CASE("a server that is not there is asked until the run ends, also by kill -9") {
  const TempDir dir;
  Program run(train(dir, {"++logger.mlflow_enabled=true", "++logger.mlflow={tracking_uri: 'http://127.0.0.1:1'}",
                          "grpo.max_num_steps=100000", "checkpointing.enabled=false"}));
  REQUIRE(toy::eventually([&] { return contains(run.err(), "It is asked again until it answers"); }));
  SAYS(run.err(), "tracker mlflow: GET http://127.0.0.1:1/api/2.0/mlflow/experiments/get-by-name: Failed to connect");
  std::vector<pid_t> trackers;
  for (const pid_t pid : toy::processes_with("bin/hexad-mlflow")) {
    const toy::Process found = toy::process(pid);  // or the shell above it, or its watcher
    if (toy::process(found.parent).parent == run.pid() && !contains(found.command, " -c ")) trackers.push_back(pid);
  }
  CHECK(trackers.size() == 1);
  ::kill(run.pid(), SIGKILL);
  run.wait();
  CHECK(toy::eventually([&] { return toy::all_gone(trackers); }));
}
