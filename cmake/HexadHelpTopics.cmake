# cmake -DFOLDER=app/help/topics -DOUT=help_topics.cpp -P HexadHelpTopics.cmake: each file TOPIC.txt as a string of C++.
file(GLOB files ${FOLDER}/*.txt)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND table "    {\"${name}\", R\"hexad(${text})hexad\"},\n")
endforeach()
file(WRITE ${OUT} "// Made from app/help/topics.
#include <span>

namespace hexad::help {
struct TopicFile {
  const char* name;
  const char* text;
};
namespace {
constexpr TopicFile kFiles[] = {
${table}};
}
extern const std::span<const TopicFile> kTopicFiles;
const std::span<const TopicFile> kTopicFiles = kFiles;
}
")
