#include <doctest/doctest.h>

#include "plugins/server_bridge/protocol/request.hpp"
#include "plugins/server_bridge/stop_strings.hpp"

using namespace hexad::bridge;

TEST_CASE("the first stop string counts, however many tokens come at once") {
  const hexad::sdk::Detokenize letters = [](const int32_t* ids, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + ids[i]);
    return text;
  };
  const std::vector<int32_t> tokens = {0, 1, 2, 0, 1, 3};  // abcabd
  CHECK(find_stop(tokens, 0, {"bd", "ca"}, letters) == 4);
  CHECK(find_stop(tokens, 4, {"bd"}, letters) == 6);
  CHECK(find_stop(tokens, 0, {"dd"}, letters) == 0);
  CHECK(find_stop(tokens, 0, {}, letters) == 0);
}

TEST_CASE("a request that goes on draws other numbers") {
  CHECK(seed_at(1, 0) != seed_at(1, 1));
  CHECK(seed_at(1, 0) == seed_at(1, 0));
}
