// Lines of the log on standard error, above the bar of a run that is shown there.
#pragma once

namespace hexad::console {

class RunConsole;

// The program's log goes to standard error, as lib/base/said/log_format.hpp makes its lines; in colours where
// standard error shows them (output.hpp). `name`: of the program.
void log_to_standard_error(const char* name);

// From now on lines of the log go through this console; null: through none. At most one is shown at a time.
void show_log_above(RunConsole* console);

}  // namespace hexad::console
