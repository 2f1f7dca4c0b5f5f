// A run of Hexad as a run of MLflow, by its REST API: what app/tracker/to_mlflow.py does by the Python library.
#pragma once
#include <string>

#include "app/tracker/mlflow_rest/http.hpp"

namespace hexad::mlflow {

// Is told the events of docs/trackers.md. What a server refuses of a step, a table or a file is left out with a line on
// standard error; only start() throws (RequestFailed, or Error(data) for an event that is none).
class Run {
 public:
  // Looks for the run with the tag of the event's id, and makes one where there is none. `uri`: where the event's
  // settings have no tracking_uri.
  Run(const Json& start, const std::string& uri, const Access& access);

  void step(const Json& event);
  void samples(const Json& event);
  void artifact(const Json& event);
  // "FINISHED", "KILLED" or "FAILED" of finished, interrupted, anything else.
  void end(const std::string& status);

 private:
  void create(const Json& start, const std::string& experiment);
  void log_parameters(const Json& config);
  void put_file(const std::string& name, std::string_view bytes);

  Server server_;
  std::string id_;
  std::string artifacts_;  // below the server's; "" where it does not serve them
};

}  // namespace hexad::mlflow
