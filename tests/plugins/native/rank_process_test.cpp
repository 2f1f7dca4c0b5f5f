// Where the child processes of this program begin.
#include "tests/plugins/backend/scenarios.hpp"

HEXAD_RANK_PROCESS(backend_test::scenarios())
