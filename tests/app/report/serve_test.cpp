// hexad report --serve: a page that follows a run.
#include "app/report/serve.hpp"

#include "core/telemetry/run_log.hpp"
#include "tests/app/report/browser.hpp"
#include "tests/support/logged.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::Json;
using report::LiveReport;
using telemetry::RunLog;

namespace {

void log_step(RunLog& log, int64_t step) {
  log.add("train", {{"reward", 0.25 * static_cast<double>(step)}});
  log.add("timing/train", {{"total_step_time", 2}});
  if (step == 3) log.add("validation", {{"accuracy", 0.625}});  // a chart that was not there before
  test_support::write_samples(log, step, {Json{{"content", fmt::format("sample {}", step)}, {"rewards", 1.0}}});
  log.end_step(step);
}

// "http://127.0.0.1:41234/" of "http://127.0.0.1:41234/ until Ctrl-C".
std::string url_of(const toy::Program& server) {
  REQUIRE(toy::eventually([&] { return contains(server.out(), "\n"); }));
  return server.out().substr(0, server.out().find(' '));
}

}  // namespace

TEST_CASE("answers are of what the folder holds, and 304 where the browser has it") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  const LiveReport live({dir.path()});  // a logger.log_dir
  const http::Answer waits = live({"/", ""});
  CHECK(waits.status == 200);
  CHECK(contains(waits.body, "Waiting for the first step."));
  CHECK(live({"/metrics.json", ""}).status == 503);
  log_step(log, 1);
  CHECK(contains(live({"/", ""}).body, "connect-src 'self'"));
  const http::Answer first = live({"/metrics.json", ""});
  CHECK(first.type == "application/json");
  CHECK(Json::parse(first.body).at("runs")[0].at("series").at("train/reward") == Json{0.25});
  CHECK(live({"/metrics.json", first.version}).status == 304);
  const Json samples = Json::parse(live({"/samples.json", ""}).body);
  CHECK(samples.at("runs")[0].at("samples")[0].at("prompt") == "sample 1");
  log_step(log, 2);
  const http::Answer second = live({"/metrics.json", first.version});
  CHECK(second.status == 200);
  CHECK(Json::parse(second.body).at("runs")[0].at("steps") == Json{1, 2});
  CHECK(live({"/exp_001/config.yaml", ""}).status == 404);
  CHECK(live({"/favicon.ico", ""}).status == 204);
}

TEST_CASE("samples that come after their step's metrics are another answer; so is what they grow to") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log_step(log, 1);
  log.add("train", {{"reward", 1}});
  log.end_step(2);
  const LiveReport live({log.directory()});
  std::string samples = live({"/samples.json", ""}).version;
  const std::string metrics = live({"/metrics.json", ""}).version;
  for (const int count : {1, 2}) {
    std::string text;
    for (int i = 0; i < count; ++i) text += Json{{"content", "late"}, {"rewards", 1.0}}.dump() + "\n";
    dir.write("exp_001/train_data_step2.jsonl", text);
    const http::Answer late = live({"/samples.json", samples});
    REQUIRE(late.status == 200);
    CHECK(Json::parse(late.body).at("runs")[0].at("samples").size() == 1 + static_cast<size_t>(count));
    samples = late.version;
    CHECK(live({"/samples.json", samples}).status == 304);
    CHECK(live({"/metrics.json", metrics}).status == 304);
  }
}

TEST_CASE("a file that cannot be looked at is told to the browser, and read when it is there again") {
  const toy::TempDir dir;
  const std::filesystem::path metrics = dir / "metrics.jsonl";
  std::filesystem::create_symlink("metrics.jsonl", metrics);
  const LiveReport live({dir.path()});
  for (const char* path : {"/metrics.json", "/samples.json"}) {
    const http::Answer answer = live({path, ""});
    CHECK(answer.status == 503);
    CHECK_MESSAGE(contains(answer.body, "Too many levels of symbolic links"), answer.body);
  }
  CHECK(contains(live({"/", ""}).body, "Waiting for the first step."));
  std::filesystem::remove(metrics);
  dir.write(metrics, "{\"step\": 1}\n");
  CHECK(live({"/metrics.json", ""}).status == 200);
}

TEST_SUITE_BEGIN("timing");  // a server and a browser that must answer in time

TEST_CASE("the page follows a run into its next folder, asks for nothing else, and Ctrl-C ends it with 130") {
  const toy::TempDir dir;
  RunLog log(dir.path(), "");
  log_step(log, 1);
  toy::Program server({"report", "--serve", "--port", "0", dir.path().string()});
  const std::string url = url_of(server);
  const Json read = {{"subtitle", "document.getElementById('subtitle').textContent"},
                     {"accuracy", "document.querySelectorAll('[data-metric=\"train/reward\"] path').length"},
                     {"samples", "document.getElementById('samples').textContent"},
                     {"live", "document.getElementById('live').textContent"},
                     {"mark", "window.mark = 1"}};
  const std::string follows =
      "document.getElementById('subtitle').textContent.startsWith('3 steps') && "
      "document.getElementById('samples').textContent.includes('sample 3')";
  const Json visit = {
      {"page", url},
      {"stages",
       {{{"until", browser::kDrawn + " && document.getElementById('live').textContent"}, {"read", read}},
        {{"until", follows}, {"read", read}},
        {{"until", "document.title.includes('exp_002') && !window.mark && " + browser::kDrawn}, {"read", read}}}}};
  toy::Program watcher = browser::start(dir, Json::array({visit}));
  REQUIRE(toy::eventually([&] { return contains(watcher.out(), "\n"); }));
  log_step(log, 2);
  log_step(log, 3);
  REQUIRE(toy::eventually([&] { return std::ranges::count(watcher.out(), '\n') == 2; }));
  RunLog next(dir.path(), "");
  log_step(next, 1);
  const toy::Ended watched = watcher.wait();
  REQUIRE_MESSAGE(watched.code == 0, watched.err);
  std::istringstream lines(watched.out);
  std::string before, after, last;
  std::getline(lines, before), std::getline(lines, after), std::getline(lines, last);
  const Json begun = Json::parse(before), ended = Json::parse(after);
  CHECK(begun.at("read").at("subtitle").get<std::string>().starts_with("1 step in "));
  CHECK(ended.at("read").at("live").get<std::string>().starts_with("live, "));
  CHECK(ended.at("read").at("accuracy").get<int>() > begun.at("read").at("accuracy").get<int>());
  const Json reloaded = Json::parse(last);
  CHECK(reloaded.at("read").at("subtitle").get<std::string>().starts_with("1 step in "));
  CHECK_MESSAGE(reloaded.at("console").empty(), last);
  for (const Json& asked : reloaded.at("requests"))
    CHECK_MESSAGE((asked == url + "metrics.json" || asked == url + "samples.json"), asked.dump());
  ::kill(server.pid(), SIGINT);
  const toy::Ended end = server.wait();
  CHECK(end.code == 130);
  CHECK(end.out == url + " until Ctrl-C\n");
}

TEST_CASE("a port that is taken is named with what to do") {
  const toy::TempDir dir;
  toy::Program first({"report", "--serve", "--port", "0", dir.path().string()});
  const std::string url = url_of(first), port = url.substr(17, url.size() - 18);
  const toy::Ended second = toy::run({"report", "--serve", "--port", port, dir.path().string()});
  CHECK(second.code == 2);
  CHECK(second.err == "hexad: report --serve: cannot listen on 127.0.0.1:" + port +
                          ": Address already in use. Give --port another number, or 0 for any free one\n");
  ::kill(first.pid(), SIGTERM);
  CHECK(first.wait().code == 143);
}

TEST_SUITE_END();
