#include "app/help/man.hpp"

#include <fmt/format.h>

#include "app/help/exit_codes.hpp"
#include "app/help/topics.hpp"
#include "app/help/tree.hpp"
#include "lib/base/text.hpp"

namespace hexad::help {
namespace {

// As roff prints it: no request, no escape, and dashes that can be copied into a shell.
std::string escaped(const std::string& text) {
  std::string safe = replaced(replaced(replaced(text, "\\", "\\e"), "-", "\\-"), "'", "\\(aq");
  if (safe.starts_with('.')) safe = "\\&" + safe;
  return replaced(safe, "\n.", "\n\\&.");
}

// "[KEY=VALUE]..." of an argument, as it stands in a synopsis.
std::string usage_of(const CLI::Option& argument) {
  std::string text = argument.get_name();
  if (argument.get_items_expected_max() > 1) text += "...";
  return argument.get_required() ? text : "[" + text + "]";
}

std::string options_section(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* argument : arguments_of(app))
    text += fmt::format(".TP\n.I {}\n{}\n", escaped(argument->get_name()), escaped(argument->get_description()));
  for (const CLI::Option* option : options_of(app)) {
    std::string names = joined(spellings(*option));
    if (takes_value(*option)) names += " " + option->get_type_name();
    text += fmt::format(".TP\n.B {}\n{}\n", escaped(names), escaped(option->get_description()));
  }
  return text.empty() ? "" : ".SH OPTIONS\n" + text;
}

std::string commands_section(const CLI::App& app, const std::string& page) {
  std::string text;
  for (const CLI::App* command : commands_of(app))
    text += fmt::format(".TP\n.BR {}\\-{} (1)\n{}\n", escaped(page), escaped(command->get_name()),
                        escaped(command->get_description()));
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

std::string topics_section() {
  std::string text = ".SH TOPICS\n.B hexad help\n.I TOPIC\nprints one of these:\n";
  for (const Topic& topic : topics())
    text += fmt::format(".TP\n.B {}\n{}\n", escaped(topic.name), escaped(topic.title));
  return text;
}

std::string exit_section() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitCode& each : exit_codes())
    text += fmt::format(".TP\n.B {}\n{}. {}\n", each.code, escaped(std::string(each.name)),
                        escaped(std::string(each.meaning)));
  return text;
}

void add_pages(const CLI::App& app, const std::string& page, const std::string& version, bool is_root,
               std::vector<ManPage>& pages) {
  const std::string about = app.get_description();
  const std::string words = replaced(page, "-", " ");
  std::string usage = commands_of(app).empty() ? "" : " COMMAND";
  for (const CLI::Option* argument : arguments_of(app)) usage += " " + usage_of(*argument);
  std::string text = fmt::format(".TH \"{}\" \"1\" \"\" \"Hexad {}\" \"Hexad\"\n", escaped(page), escaped(version));
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(page), escaped(about.substr(0, about.find('\n'))));
  text +=
      fmt::format(".SH SYNOPSIS\n.B {}\n{} [OPTIONS]\n", escaped(words), escaped(usage.empty() ? "" : usage.substr(1)));
  text += ".SH DESCRIPTION\n" + escaped(about) + "\n";
  text += commands_section(app, page) + options_section(app);
  if (is_root) text += topics_section();
  text += exit_section();
  if (!is_root) text += ".SH SEE ALSO\n.BR hexad (1),\n.B hexad help\n";
  pages.push_back({page + ".1", text});
  for (const CLI::App* command : commands_of(app))
    add_pages(*command, page + "-" + command->get_name(), version, false, pages);
}

}  // namespace

std::vector<ManPage> man_pages(const CLI::App& app, const std::string& version) {
  std::vector<ManPage> pages;
  add_pages(app, "hexad", version, true, pages);
  return pages;
}

}  // namespace hexad::help
