#include "app/help/topics.hpp"

#include <algorithm>
#include <span>

#include "app/help/exit_codes.hpp"

namespace hexad::help {

struct TopicFile {
  const char* name;
  const char* text;
};
extern const std::span<const TopicFile> kTopicFiles;  // the build makes it of topics/*.txt

namespace {

Topic topic_of(const std::string& name, const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  return {name, first.substr(std::min(first.size(), name.size() + 2)), text};
}

}  // namespace

const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = [] {
    std::vector<Topic> found = {topic_of("exit-codes", exit_codes_text())};
    for (const TopicFile& file : kTopicFiles) found.push_back(topic_of(file.name, file.text));
    std::ranges::sort(found, {}, &Topic::name);
    return found;
  }();
  return all;
}

const Topic* find_topic(const std::string& name) {
  const auto found = std::ranges::find(topics(), name, &Topic::name);
  return found == topics().end() ? nullptr : &*found;
}

}  // namespace hexad::help
