// Keys by what `hexad train` prints or refuses.
#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/support/toy/program.hpp"

using toy::contains;
using toy::Ended;
using toy::TempDir;

namespace {

Ended train(const TempDir& dir, std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"train", dir.write("toy.yaml", toy::config_text(dir.path())).string()});
  overrides.push_back("grpo.max_num_steps=1");
  return toy::run(overrides);
}

// A port of this machine that nobody else can have.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  int number() const { return port_; }

 private:
  int socket_, port_ = 0;
};

}  // namespace

TEST_CASE("ranks meet at a port of cluster.master_port_range") {
  const TakenPort port;
  const TempDir dir;
  const Ended run =
      train(dir, {"cluster.gpus_per_node=2", fmt::format("++cluster.master_port_range_low={}", port.number()),
                  fmt::format("++cluster.master_port_range_high={}", port.number() + 1)});
  CHECK(run.code == 4);
  CHECK_MESSAGE(contains(run.err, fmt::format("no free port in [{}, {}): widen cluster.master_port_range_low and "
                                              "cluster.master_port_range_high",
                                              port.number(), port.number() + 1)),
                run.err);
}

TEST_CASE("as many validation samples are printed as are asked for") {
  const TempDir dir;
  const Ended run = train(dir, {"grpo.val_at_start=true", "++logger.num_val_samples_to_print=3"});
  CHECK(run.code == 0);
  int printed = 0;
  for (size_t at = 0; (at = run.err.find("validation sample: ", at)) != std::string::npos; ++at) ++printed;
  CHECK_MESSAGE(printed == 3, run.err);
}

TEST_CASE("a plugin that is not pinned is refused where some are") {
  const TempDir dir;
  const Ended run = train(dir, {fmt::format("++plugins.pin={{other: 'sha256:{}'}}", std::string(64, '0'))});
  CHECK(run.code != 0);
  CHECK_MESSAGE(contains(run.err, "is not listed in plugins.pin, and nothing unlisted loads"), run.err);
}

TEST_CASE("a plugin whose manifest makes no sense is refused before its code is mapped") {
  const TempDir dir;
  const plugin_test::PluginFolder folder;
  const toy::fs::path mapped = dir / "mapped";
  const std::string tells =
      "#include <stdio.h>\n__attribute__((constructor)) static void mapped(void) { fclose(fopen(\"" + mapped.string() +
      "\", \"w\")); }\n";
  const toy::fs::path library = folder.compile("mine", "'-DNAME=\"mine\"'", tells + plugin_test::kSource);
  const auto run_with = [&](const plugin_test::Json& changes) {
    folder.write_manifest(library, "mine", changes);
    return train(dir, {"loss_fn.plugin=mine",
                       fmt::format("plugins.paths=['{}', '{}']", folder.path().string(), toy::plugins().string())});
  };
  const std::string file = (folder.path() / "libmine.hexad.json").string();
  const Ended refused = run_with({{"config", {{"keys", {{"mine_cfg", {{"type", "mapp"}}}}}}}});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, file + ": keys.mine_cfg: type: got 'mapp'"), refused.err);
  const Ended large = run_with({{"config", std::string(300'000, '#')}});
  CHECK(large.code != 0);
  CHECK_MESSAGE(contains(large.err, file + ": 2"), large.err);
  CHECK_MESSAGE(contains(large.err, "bytes, a manifest has at most 262144"), large.err);
  CHECK(!toy::fs::exists(mapped));
  run_with(plugin_test::Json::object());
  CHECK(toy::fs::exists(mapped));
}

TEST_CASE("plugins of a folder that others may write to load where that is allowed") {
  const TempDir dir;
  toy::fs::copy(toy::plugins(), dir / "open");
  REQUIRE(::chmod((dir / "open").c_str(), 0777) == 0);
  const std::string paths = fmt::format("plugins.paths=['{}']", (dir / "open").string());
  const Ended refused = train(dir, {paths});
  CHECK(refused.code != 0);
  CHECK_MESSAGE(contains(refused.err, "refused, others could have changed it"), refused.err);
  const Ended allowed = train(dir, {paths, "++plugins.allow_insecure_dirs=true"});
  CHECK_MESSAGE(allowed.code == 0, allowed.err);
}
