// Where the child processes of this program begin. Rows name their backend.
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/backend/test_host.hpp"

const char* backend_test::plugin_name() { return "megatron"; }

HEXAD_RANK_PROCESS(backend_test::scenarios())
