#include <cmath>

#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"
#include "sdk/verify/overlay_host.hpp"

namespace hexad::verify {
namespace {

// Bytes of the host table of every frozen minor, by minor. A new minor adds its line.
constexpr uint64_t kFrozen[] = {
    HEXAD_STRUCT_SIZE(hexad_host, extension),  // 1.0
    HEXAD_STRUCT_SIZE(hexad_host, extension),  // 1.1
    HEXAD_STRUCT_SIZE(hexad_host, extension),  // 1.2
};

// What a trial gives under this table; `where` begins the findings.
std::string under(const Subject& subject, const OverlayHost& host, bool grown, const std::string& where,
                  Findings& findings) {
  const Instance instance(subject, host.table());
  if (!findings.expect(static_cast<bool>(instance), "create", where + ": " + instance.error())) return "";
  const Trial trial = run_trial(subject, instance.self(), {}, grown);
  findings.expect(trial.code == HEXAD_OK, "run", where + ": " + trial.text);
  return trial.bits;
}

}  // namespace

void check_hosts(const Subject& subject, Findings& findings) {
  const hexad_host* real = subject.engine->host();
  const std::string expected = under(subject, OverlayHost(real), false, "under today's host", findings);
  const auto same = [&](const std::string& got, const std::string& where) {
    findings.expect(!repeatable(subject) || got == expected, "same result",
                    where + " the result differs from today's host");
  };
  for (uint32_t minor = subject.desc->min_host_minor; minor < std::size(kFrozen); ++minor) {
    const std::string where = "under a host of ABI 1." + std::to_string(minor) + ", with poison behind its end";
    same(under(subject, OverlayHost(real, kFrozen[minor]), false, where, findings), where);
  }
  const std::string where = "under a host of a later minor, with longer structs";
  same(under(subject, OverlayHost(real, 0, /*grown=*/true), true, where, findings), where);
}

}  // namespace hexad::verify
