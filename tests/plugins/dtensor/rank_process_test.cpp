// Where the child processes of this program begin.
#include "tests/plugins/dtensor/scenarios.hpp"

HEXAD_RANK_PROCESS(dtensor_test::scenarios())
