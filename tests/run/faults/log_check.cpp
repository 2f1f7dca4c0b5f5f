#include "tests/run/faults/log_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace faults {
namespace {

constexpr size_t kStamp = 23;  // of "2026-01-31 12:34:56.789"

std::string request_id(const std::string& name) {
  const size_t begin = name.find('-', name.find('-') + 1) + 1;
  return name.substr(begin, name.rfind('-') - begin);
}

}  // namespace

LogCheck::LogCheck(const std::string& worker, const std::string& controller, bool own_servers)
    : own_servers_(own_servers) {
  std::istringstream in(worker);
  for (std::string line; std::getline(in, line);) {
    if (line.size() > kStamp + 2 && line[0] == '[') lines_.push_back({line.substr(1, kStamp), line});
  }
  std::istringstream said(controller);
  for (std::string line; std::getline(said, line);) lines_.push_back({"", line});  // has no time
}

std::string LogCheck::take(const std::string& since, const std::vector<Parts>& alternatives) {
  for (Line& line : lines_) {
    if (line.counted || (!line.at.empty() && line.at < since)) continue;
    const auto has = [&](const std::string& part) { return line.text.find(part) != std::string::npos; };
    if (!std::ranges::any_of(alternatives, [&](const Parts& parts) { return std::ranges::all_of(parts, has); }))
      continue;
    line.counted = true;
    return line.text;
  }
  return "";
}

int LogCheck::vagueness(const nlohmann::ordered_json& fault) {
  const std::string kind = fault.at("kind");
  if (kind == "kill" || kind == "late_kill" || kind == "unavailable" || kind == "page" || kind.starts_with("status"))
    return 0;
  return kind == "hang" ? 1 : 2;
}

std::string LogCheck::answer_to(const nlohmann::ordered_json& fault) {
  const std::string kind = fault.at("kind"), point = fault.at("point"), since = fault.at("at");
  const std::string named = "fault " + fault.at("name").get<std::string>();
  const std::string server = fmt::format("(http://127.0.0.1:{})", fault.at("port").get<int>());
  const std::string request = fmt::format("request {}: ", request_id(fault.at("request")));
  const std::string path = fault.at("path");
  // Nobody waits for the answer to an abort.
  if (point == "abort" && kind != "kill") return "the abort was lost, and its answer counts for nothing";
  if (kind == "kill" || kind == "late_kill")
    return take(since, {own_servers_ ? Parts{server, named, "ended with ", "It is started again in"}
                                     : Parts{server, "requests go on elsewhere"}});
  const std::vector<Parts> given_up = {{server, "has sent no token for ", "requests go on elsewhere"},
                                       {server, "failed at /", "requests go on elsewhere"},
                                       {server, "is not well, /health: ", "requests go on elsewhere"}};
  const std::vector<Parts> killed = {{server, "was killed", named, "It is started again in"}};
  if (kind == "hang") {
    const std::string line = take(since, killed);
    return line.empty() ? take(since, given_up) : line;  // the run may end before the time that it has to get well
  }
  if (kind == "stop") {
    std::vector<Parts> any = {{server, "is not ready: ", "Operation timed out", "It is asked again in"}};
    any.insert(any.end(), given_up.begin(), given_up.end());
    any.insert(any.end(), killed.begin(), killed.end());
    if (point == "launch") {  // it was continued before it was late
      for (const char* next : {"takes requests: ", "it loads the weights in force"}) any.push_back({server, next});
    }
    return take(since, any);
  }
  if (kind == "disk_full" && point == "checkpoint")
    return take("", {{"is not saved: ", "No space left on device", "it is tried again"}});
  if (kind == "disk_full")
    return take(since, {{"weight update: cannot write ", "No space left on device. It is tried again"}});
  const char* done[] = {"It goes on with the ", "requests go on elsewhere", "It is asked again in"};
  std::vector<Parts> wanted;
  for (const char* what : done) {
    wanted.push_back({server, named, what});
    if (!fault.at("request").get<std::string>().empty()) {
      wanted.push_back({server, request, what});
    } else if (!kind.starts_with("status")) {
      wanted.push_back({server, path, what});
      if (kind == "stranger") wanted.push_back({server, "it serves another model", what});
      if (point == "reload") wanted.push_back({server, "reload_weights", what});
    }
  }
  return take(since, wanted);
}

}  // namespace faults
