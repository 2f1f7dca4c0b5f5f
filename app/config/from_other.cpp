#include "app/config/from_other.hpp"

#include "compat/draft/foreign.hpp"
#include "compat/trl/translate.hpp"
#include "compat/verl/translate.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"

namespace hexad::config {
namespace {

void write(const compat::Draft& draft, const FromOther& from, const std::string& command, std::ostream& out,
           std::ostream& errors) {
  const std::string name = command.substr(command.find('-') + 1);
  const std::string text =
      draft.text(fmt::format("Written by `hexad config {}` of {} (docs/from_{}.md). `hexad config "
                             "check` says whether it runs.",
                             command, from.file, name));
  for (const compat::LeftOut& each : draft.left_out())
    errors << "not carried over: " << one_line(without_secrets(each.key + ": " + each.why)) << '\n';
  if (from.out.empty()) {
    out << text;
  } else {
    write_file(from.out, text);
  }
}

std::optional<compat::trl::Trainer> trainer_of(const FromOther& from) {
  if (from.trainer.empty()) return std::nullopt;
  const std::optional<compat::trl::Trainer> trainer = compat::trl_trainer(from.trainer);
  if (!trainer) fail(ErrorKind::config, "--trainer: got '{}', wanted grpo, sft, dpo or reward", from.trainer);
  return trainer;
}

}  // namespace

void config_from_trl(const FromOther& from, std::ostream& out, std::ostream& errors) {
  if (from.processes && (*from.processes < 1 || *from.processes > 1'000'000))
    fail(ErrorKind::config, "--processes: got {}, wanted a number from 1 to 1000000", *from.processes);
  const compat::TrlOptions options{trainer_of(from), from.processes};
  write(compat::from_trl(compat::read_foreign(from.file, from.overrides), options), from, "from-trl", out, errors);
}

void config_from_verl(const FromOther& from, std::ostream& out, std::ostream& errors) {
  write(compat::from_verl(compat::read_foreign(from.file, from.overrides)), from, "from-verl", out, errors);
}

}  // namespace hexad::config
