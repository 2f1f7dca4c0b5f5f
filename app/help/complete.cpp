#include "app/help/complete.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "app/help/topics.hpp"
#include "app/help/tree.hpp"

namespace hexad::help {
namespace {

// Where the words before the last one have led to.
struct Place {
  const CLI::App* command;
  std::vector<std::string> given;        // arguments by their place
  const CLI::Option* waiting = nullptr;  // an option whose value comes next
};

const CLI::Option* option_named(const CLI::App& command, const std::string& spelling) {
  for (const CLI::Option* option : options_of(command)) {
    const std::vector<std::string> all = spellings(*option);
    if (std::ranges::find(all, spelling) != all.end()) return option;
  }
  return nullptr;
}

Place place_of(const CLI::App& app, const std::vector<std::string>& words) {
  Place place{&app, {}, nullptr};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (std::exchange(place.waiting, nullptr)) continue;  // it was that option's value
    if (word.starts_with('-')) {
      const CLI::Option* option = option_named(*place.command, word);
      if (option && takes_value(*option)) place.waiting = option;
      continue;
    }
    const CLI::App* next = place.given.empty() ? command_named(*place.command, word) : nullptr;
    if (next)
      place.command = next;
    else
      place.given.push_back(word);
  }
  return place;
}

void add(Candidates& found, const std::string& begun, const std::string& text, const std::string& about) {
  if (text.starts_with(begun)) found.words.push_back({text, about});
}

// The argument that the next word stands for; the last one may be given many times. null: the command takes none.
const CLI::Option* argument_at(const CLI::App& command, size_t index) {
  const std::vector<const CLI::Option*> all = arguments_of(command);
  if (all.empty()) return nullptr;
  if (index < all.size()) return all[index];
  return all.back()->get_items_expected_max() > 1 ? all.back() : nullptr;
}

// "grpo.max" -> grpo.max_num_steps=, and for "gr" grpo. alone. The signs of Hydra stay before a key.
void add_keys(Candidates& found, const std::string& begun, const std::vector<std::string>& keys) {
  const size_t sign = std::min(begun.find_first_not_of("+~"), begun.size());
  const std::string signs = begun.substr(0, sign), prefix = begun.substr(sign);
  std::set<std::string> texts;
  for (const std::string& key : keys) {
    if (!key.starts_with(prefix)) continue;
    const size_t dot = key.find('.', prefix.size());
    texts.insert(signs + (dot == key.npos ? key + (signs == "~" ? "" : "=") : key.substr(0, dot + 1)));
  }
  for (const std::string& text : texts) found.words.push_back({text, ""});
}

}  // namespace

Candidates complete(const CLI::App& app, const std::vector<std::string>& words, const Keys& keys) {
  Candidates found;
  const std::string begun = words.empty() ? "" : words.back();
  const Place place = place_of(app, words);
  if (place.waiting) {
    found.files = true;
    return found;
  }
  if (begun.starts_with('-')) {
    for (const CLI::Option* option : options_of(*place.command))
      for (const std::string& spelling : spellings(*option)) add(found, begun, spelling, option->get_description());
    return found;
  }
  if (place.given.empty())
    for (const CLI::App* command : commands_of(*place.command))
      add(found, begun, command->get_name(), command->get_description());
  const CLI::Option* argument = argument_at(*place.command, place.given.size());
  if (!argument) return found;
  const std::string name = argument->get_name();
  if (name == "TOPIC") {
    for (const Topic& topic : topics()) add(found, begun, topic.name, topic.title);
  } else if (name == "SHELL") {
    for (const char* shell : {"bash", "zsh", "fish"}) add(found, begun, shell, "");
  } else if (name == "OVERRIDES") {
    if (begun.find('=') == begun.npos) add_keys(found, begun, keys(place.given.empty() ? "" : place.given.front()));
    found.files = begun.find('=') != begun.npos;
  } else {
    found.files = true;
  }
  return found;
}

std::string lines_of(const Candidates& candidates) {
  std::string text;
  for (const Candidates::Word& word : candidates.words)
    text += word.about.empty() ? word.text + "\n" : word.text + "\t" + word.about + "\n";
  return candidates.files ? text + ":files\n" : text;
}

}  // namespace hexad::help
