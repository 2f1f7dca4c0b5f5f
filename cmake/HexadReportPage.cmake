# cmake -DFOLDER=app/report/page -DMETRICS=docs/metrics.md -DCMARK=cmark-gfm -DOUT=report_page.cpp
#   -P HexadReportPage.cmake
# The page, its style, its scripts (in the order of scripts.txt) and docs/metrics.md as one string of C++, and the
# script of a page that is served as another.
file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/style.css style)
file(READ ${FOLDER}/live.js live)
file(READ ${FOLDER}/scripts.txt names)
string(REGEX MATCHALL "[a-z_]+\\.js" names "${names}")
foreach(name ${names})
  file(READ ${FOLDER}/${name} script)
  string(APPEND scripts "${script}\n")
endforeach()

# One heading lower than as a page of its own; its neighbours in docs/ are not there to be followed.
execute_process(COMMAND ${CMARK} --extension table ${METRICS} OUTPUT_VARIABLE reading COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "<h1>[^<]*</h1>\n" "" reading "${reading}")
string(REGEX REPLACE "<(/?)h2>" "<\\1h3>" reading "${reading}")
string(REGEX REPLACE "<a href=\"([a-z_]+\\.md)\">[^<]*</a>" "<code>docs/\\1</code>" reading "${reading}")
string(REPLACE "<table>" "<div class=\"scroll\"><table>" reading "${reading}")
string(REPLACE "</table>" "</table></div>" reading "${reading}")

string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPTS@" "${scripts}" page "${page}")
string(REPLACE "@READING@" "${reading}" page "${page}")
file(WRITE ${OUT} "// Made from app/report/page and docs/metrics.md.
#include <string_view>

namespace hexad::report {
extern const std::string_view kReportPage, kLiveScript;
const std::string_view kReportPage = R\"hexad(${page})hexad\";
const std::string_view kLiveScript = R\"hexad(${live})hexad\";
}
")
