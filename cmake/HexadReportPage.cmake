# cmake -DFOLDER=app/report/page -DOUT=report_page.cpp -P HexadReportPage.cmake: the page, its style and its scripts
# (in the order of scripts.txt) as one string of C++.
file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/style.css style)
file(READ ${FOLDER}/scripts.txt names)
string(REGEX MATCHALL "[a-z_]+\\.js" names "${names}")
foreach(name ${names})
  file(READ ${FOLDER}/${name} script)
  string(APPEND scripts "${script}\n")
endforeach()
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPTS@" "${scripts}" page "${page}")
file(WRITE ${OUT} "// Made from app/report/page.
#include <string_view>

namespace hexad::report {
extern const std::string_view kReportPage;
const std::string_view kReportPage = R\"hexad(${page})hexad\";
}
")
