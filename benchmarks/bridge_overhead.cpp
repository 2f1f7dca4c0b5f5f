// What the vLLM bridge adds to a request beside a bare HTTP client with the same bodies, and many requests at once.
//
//   bridge_overhead --plugins build/dev/lib/hexad/plugins --out RESULT.json [--concurrency 1,64,256,1024] [--rounds 5]
//                   [--flight 10000]
//
// Built by `ninja bridge_overhead`. Three arms in turn, round by round: `bridge`, the plugin through the ABI as the
// engine drives it; `bare`, libcurl's multi interface, which drops what it gets; `bare_sse`, the same, which reads
// tokens and log-probs out of the events. The server is a process of its own and sends answers
//   streamed  a token every --pace-ms, each request in a phase of its own: the added latency is what a run meets;
//   whole     at once, as fast as they are asked for: the added wall and processor time is what the arms cost.
// burst: latency of the requests that were handed over together at the start; latency: of those that each took the
// place of one that had ended. "added" is the difference of two arms in one round; median, least and most are over the
// rounds. Every answer's tokens and log-probs are compared with what the server sent, and the server counts what it was
// asked. Last, --flight requests at once, held by the server until all are there. Exits with 1 when an answer is wrong.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>

#include "benchmarks/bridge_overhead/apart.hpp"
#include "benchmarks/bridge_overhead/bare_client.hpp"
#include "benchmarks/bridge_overhead/bridge_arm.hpp"
#include "benchmarks/bridge_overhead/footprint.hpp"
#include "benchmarks/bridge_overhead/server.hpp"

namespace {

using namespace hexad::bridge_overhead;

constexpr int64_t kTarget = 256;        // requests at once, of the limit
constexpr double kLimitMs = 1;          // that may be added to a request
constexpr int64_t kOtherFiles = 128;    // beside connections
constexpr int64_t kMostAtOnce = 16384;  // of the bridge's settings here

struct Options {
  std::string plugins, out;
  std::vector<int64_t> concurrency = {1, 64, 256, 1024};
  int64_t rounds = 5, flight = 10000, pace_ms = 50, waves = 4, whole_requests = 4000;
  Shape shape;
};

using Arm = std::function<Outcome(const Load&)>;
// Quantities of one arm's run.
using Sample = std::map<std::string, double>;

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// Median and extremes over rounds.
Json spread(const std::vector<double>& values) {
  return {{"median", quantile(values, 0.5)}, {"least", quantile(values, 0)}, {"most", quantile(values, 1)}};
}

void need_descriptors(int64_t connections) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (static_cast<int64_t>(limit.rlim_max) >= connections + kOtherFiles) return;
  throw std::runtime_error(fmt::format(
      "{} requests at once need as many open files: this process may have {} (ulimit -Hn), wanted {}. Raise "
      "the limit, or ask for fewer with --flight and --concurrency",
      connections, limit.rlim_max, connections + kOtherFiles));
}

class Bench {
 public:
  Bench(const Options& options, Server& server) : options_(options), server_(server) {}

  // Rows of all concurrencies.
  Json rounds() {
    BridgeArm bridge(options_.plugins, server_.url(), kMostAtOnce);
    BareClient bare(server_.url(), false), sse(server_.url(), true);
    const std::vector<std::pair<std::string, Arm>> arms = {
        {"bridge", [&](const Load& load) { return bridge.run(load); }},
        {"bare", [&](const Load& load) { return bare.run(load); }},
        {"bare_sse", [&](const Load& load) { return sse.run(load); }}};
    Json rows = Json::array();
    for (const int64_t concurrency : options_.concurrency) {
      for (const bool streamed : {true, false}) rows.push_back(row(arms, concurrency, streamed));
    }
    return {{"rows", rows}, {"wrong", wrong_}};
  }

  // All at once, in one arm.
  Json flight(bool by_bridge) {
    const Load load{0, options_.flight, options_.flight, options_.shape};
    std::unique_ptr<BridgeArm> bridge;
    std::unique_ptr<BareClient> bare;
    if (by_bridge)
      bridge = std::make_unique<BridgeArm>(options_.plugins, server_.url(), kMostAtOnce);
    else
      bare = std::make_unique<BareClient>(server_.url(), false);
    const double before = status_mib("VmRSS");
    server_.board().reset(10 * 1000 * options_.pace_ms, options_.flight);
    MostOpenFiles files;
    const double server_cpu = server_.cpu_seconds();
    const Outcome outcome = by_bridge ? bridge->run(load) : bare->run(load);
    const std::string arm = by_bridge ? "bridge" : "bare";
    const double all_there_s = 1e-9 * double(server_.board().together_ns) -
                               std::chrono::duration<double>(outcome.start.time_since_epoch()).count();
    if (server_.board().most_running != options_.flight) {
      wrong_.push_back(fmt::format("{}: the server had {} requests at once, wanted {}", arm,
                                   server_.board().most_running.load(), options_.flight));
    }
    check(arm, outcome, load);
    return {{"arm", arm},
            {"requests", load.count},
            {"all_at_server_s", all_there_s},
            {"wall_s", outcome.wall_s},
            {"cpu_s", outcome.cpu_s},
            {"server_cpu_s", server_.cpu_seconds() - server_cpu},
            {"rss_before_mib", before},
            {"peak_rss_mib", status_mib("VmHWM")},
            {"most_open_files", files.stop()},
            {"wrong", wrong_}};
  }

 private:
  Json row(const std::vector<std::pair<std::string, Arm>>& arms, int64_t concurrency, bool streamed) {
    std::map<std::string, std::vector<Sample>> samples;
    const int64_t count = streamed ? std::max<int64_t>(options_.waves * concurrency, 8)
                                   : std::max(options_.waves * concurrency, options_.whole_requests);
    for (const auto& [name, arm] : arms) one(name, arm, {0, concurrency, concurrency, options_.shape}, false);  // warm
    for (int64_t round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < arms.size(); ++i) {
        const auto& [name, arm] = arms[(i + static_cast<size_t>(round)) % arms.size()];
        samples[name].push_back(one(name, arm, {0, count, concurrency, options_.shape}, streamed));
      }
    }
    Json result = {{"concurrency", concurrency}, {"answers", streamed ? "streamed" : "whole"}, {"requests", count}};
    for (const auto& [name, arm] : arms) {
      for (const auto& [quantity, value] : samples[name][0])
        result[name][quantity] = spread(over_rounds(samples[name], {}, quantity));
    }
    for (const std::string other : {"bare", "bare_sse"}) {
      for (const std::string quantity : {"burst_ms", "latency_ms", "wall_ms", "cpu_us"})
        result["added_over_" + other][quantity] = spread(over_rounds(samples["bridge"], samples[other], quantity));
    }
    std::cout << fmt::format("{:5} at once, {:8}: the bridge adds", concurrency, streamed ? "streamed" : "whole");
    for (const auto& [quantity, added] : result["added_over_bare"].items())
      std::cout << fmt::format(" {} {:.3f}", quantity, added["median"].get<double>());
    std::cout << std::endl;
    return result;
  }

  // A quantity of each round, less that of another arm in the same round.
  static std::vector<double> over_rounds(const std::vector<Sample>& arm, const std::vector<Sample>& less,
                                         const std::string& quantity) {
    std::vector<double> values;
    for (size_t i = 0; i < arm.size(); ++i)
      values.push_back(arm[i].at(quantity) - (less.empty() ? 0 : less[i].at(quantity)));
    return values;
  }

  Sample one(const std::string& name, const Arm& arm, const Load& load, bool streamed) {
    Board& board = server_.board();
    board.reset(streamed ? 1000 * options_.pace_ms : 0, 0);
    const double cpu = server_.cpu_seconds();
    const Outcome outcome = arm(load);
    const double server_cpu = server_.cpu_seconds() - cpu;
    check(name, outcome, load);
    const auto count = double(load.count);
    return {{"burst_ms", mean(outcome.burst_ms)},
            {"latency_ms", mean(outcome.latency_ms)},
            {"latency_p50_ms", quantile(outcome.latency_ms, 0.5)},
            {"latency_p99_ms", quantile(outcome.latency_ms, 0.99)},
            {"wall_ms", 1e3 * outcome.wall_s / count},
            {"cpu_us", 1e6 * outcome.cpu_s / count},
            {"server_cpu_us", 1e6 * server_cpu / count},
            {"server_late_us", 1e-3 * double(board.late_ns) / count}};
  }

  void check(const std::string& name, const Outcome& outcome, const Load& load) {
    const auto wrong = [&](const std::string& text) {
      if (wrong_.size() < 20) wrong_.push_back(fmt::format("{}, {} at once: {}", name, load.concurrency, text));
    };
    for (const std::string& text : outcome.wrong) wrong(text);
    const Board& board = server_.board();
    if (board.requests != load.count)
      wrong(fmt::format("the server was asked {} times, wanted {}", board.requests.load(), load.count));
    if (outcome.body_bytes > 0 && outcome.body_bytes != board.body_bytes)
      wrong(fmt::format("{} bytes came, {} were sent", outcome.body_bytes, board.body_bytes.load()));
  }

  const Options& options_;
  Server& server_;
  std::vector<std::string> wrong_;
};

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : -1;
}

Json measure(const Options& options) {
  need_descriptors(std::max(options.flight, *std::ranges::max_element(options.concurrency)));
  Server server;
  Json result = {{"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
                 {"load_average_before", load_average()},
                 {"prompt_tokens", options.shape.prompt_tokens},
                 {"new_tokens", options.shape.new_tokens},
                 {"pace_ms", options.pace_ms},
                 {"rounds", options.rounds}};
  result.update(apart([&] { return Bench(options, server).rounds(); }));
  Json target;
  for (const Json& row : result["rows"]) {
    if (row["concurrency"] != kTarget) continue;
    const auto answers = row["answers"].get<std::string>();
    const std::string quantity = answers == "streamed" ? "latency_ms" : "wall_ms";
    const double added = row["added_over_bare"][quantity]["median"];
    target[answers] = {{quantity, added}, {"limit_ms", kLimitMs}, {"reached", added <= kLimitMs}};
  }
  result["target"] = target;
  bool ok = result["wrong"].empty();
  for (const bool by_bridge : {false, true}) {
    if (options.flight == 0) break;
    const Json flight = apart([&] { return Bench(options, server).flight(by_bridge); });
    std::cout << flight.dump() << std::endl;
    ok = ok && flight["wrong"].empty();
    result["flight"].push_back(flight);
  }
  result["load_average_after"] = load_average();
  result["ok"] = ok;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What the vLLM bridge adds to a request beside a bare HTTP client");
  app.add_option("--plugins", options.plugins, "Folder with the plugin vllm_bridge")->required();
  app.add_option("--out", options.out, "JSON file of the result")->required();
  app.add_option("--concurrency", options.concurrency, "Requests at once")->delimiter(',');
  app.add_option("--rounds", options.rounds, "Of every arm");
  app.add_option("--flight", options.flight, "Requests at once at the end; 0: none");
  app.add_option("--prompt-tokens", options.shape.prompt_tokens, "Of a request");
  app.add_option("--new-tokens", options.shape.new_tokens, "Of a request");
  app.add_option("--pace-ms", options.pace_ms, "Between the tokens of a streamed answer; ten times that in the flight");
  app.add_option("--waves", options.waves, "Requests of a streamed round, times those at once");
  app.add_option("--whole-requests", options.whole_requests, "Requests of a round of whole answers, at least");
  CLI11_PARSE(app, argc, argv);
  try {
    const Json result = measure(options);
    std::ofstream(options.out) << result.dump(1) << "\n";
    return result["ok"] ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "bridge_overhead: " << error.what() << std::endl;
    return 2;
  }
}
