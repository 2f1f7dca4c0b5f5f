// What logger.trackers has to say of each tracker.
#include "tests/config/support.hpp"

using namespace config_test;

TEST_CASE("a tracker of one's own has a name and a command") {
  check_says(resolve_error({"++logger.trackers=[{command: cat}]"}),
             "logger.trackers.0.name: is missing; wanted {name: mine, command: [python3, mine.py]}");
  check_says(resolve_error({"++logger.trackers=[{name: a, command: cat},{name: b}]"}),
             "logger.trackers.1.command: is missing; wanted {name: mine, command: [python3, mine.py]}");
  check_says(resolve_error({"++logger.trackers=[{name: a, command: []}]"}), "logger.trackers.0.command: is missing");
  check_says(resolve_error({"++logger.trackers=[{name: a, command: cat, projct: b}]"}),
             "logger.trackers.0.projct: unknown key");
  check_says(resolve_error({"++logger.trackers=[cat]"}), "logger.trackers: ");
  check_says(resolve_error({"++logger.trackers={name: a}"}), "logger.trackers.command: is missing");
  CHECK(resolve_error({"++logger.trackers={name: a, command: cat}"}) == "");
  CHECK(resolve_error({"++logger.trackers=[{name: a, command: [cat, x], settings: {any: 1}}]"}) == "");
}
