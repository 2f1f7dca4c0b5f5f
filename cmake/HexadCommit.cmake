# cmake -DSOURCE=FOLDER -DOUT=commit.cpp -P HexadCommit.cmake: the commit of a checkout as a text of C++; "" where there
# is no git, or the folder is no checkout of its own but lies in another's.
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-prefix --short=12 HEAD
    OUTPUT_VARIABLE said ERROR_QUIET)
  if(said MATCHES "^\n([0-9a-f]+)\n$")  # the prefix is empty in the checkout's own folder
    set(commit ${CMAKE_MATCH_1})
  endif()
endif()
file(WRITE ${OUT} "// Made from the checkout.
namespace hexad::cli {
extern const char* const kCommit;
const char* const kCommit = \"${commit}\";
}  // namespace hexad::cli
")
