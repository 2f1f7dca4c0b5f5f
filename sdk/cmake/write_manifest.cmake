# Writes <library>.hexad.json: what the host checks before it maps a byte of the plugin's code. hexad_add_plugin() runs
# it; a build without CMake's languages can too:
#   cmake -DLIBRARY=libmy_loss.so -DKIND=loss -DNAME=my_loss [-DCONFIG=keys.json] -P write_manifest.cmake
# CONFIG: the configuration's declaration, as hexad-manifest wrote it; a .yaml is embedded as the text that it is.
# UNBUILT: the library need not be there; where it is, nothing is written, for its own build has done so. BUILD: the
# line that builds it. QUERY: the program hexad-manifest, which asks the library for further plugins (its chain `next`).
# ALSO: these, as KIND:NAME,KIND:NAME, where it cannot be asked. BUILT: an earlier manifest of it, which has them.
foreach(default VERSION=1.0.0 LICENSE=Apache-2.0 MIN_HOST_MINOR=0 MEMORY=host)
  string(REGEX MATCH "^([A-Z_]+)=(.*)" default ${default})
  if(NOT ${CMAKE_MATCH_1})
    set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  endif()
endforeach()
if(NOT ARCH)
  cmake_host_system_information(RESULT machine QUERY OS_PLATFORM)
  set(ARCH ${machine}-linux-gnu)
endif()

set(digest "")
if(EXISTS "${LIBRARY}")
  if(UNBUILT)
    return()
  endif()
  file(SHA256 ${LIBRARY} sha256)
  file(SIZE ${LIBRARY} size)
  set(digest "\n  \"sha256\": \"${sha256}\",\n  \"size\": ${size},")
elseif(BUILD)
  set(digest "\n  \"build\": \"${BUILD}\",")
elseif(NOT UNBUILT)
  message(FATAL_ERROR "write_manifest: there is no ${LIBRARY}")
endif()
get_filename_component(folder ${LIBRARY} DIRECTORY)
set(check "")
if(CHECK)  # beside the library, with its own digest
  file(SHA256 "${folder}/${CHECK}" check_sha256)
  set(check "\n  \"check\": {\"library\": \"${CHECK}\", \"sha256\": \"${check_sha256}\"},")
endif()
string(REPLACE "," ";" further "${ALSO}")
if(QUERY AND EXISTS "${LIBRARY}" AND NOT further)
  execute_process(COMMAND ${QUERY} --plugins ${LIBRARY} OUTPUT_VARIABLE plugins ERROR_VARIABLE why
    RESULT_VARIABLE failed)
  if(failed)
    string(STRIP "${why}" why)
    message(STATUS "${NAME}: its further plugins, if it has some, cannot be chosen by name (${why}): name them by ALSO")
  else()
    string(STRIP "${plugins}" further)
    string(REPLACE "\n" ";" further "${further}")
    string(REPLACE " " ":" further "${further}")
  endif()
endif()
list(REMOVE_ITEM further ${KIND}:${NAME})
set(also "")
foreach(each ${further})
  string(REGEX REPLACE "^(.*):(.*)$" "{\"kind\": \"\\1\", \"name\": \"\\2\"}" each "${each}")
  list(APPEND also "${each}")
endforeach()
if(also)
  list(JOIN also ", " also)
  set(also "\n  \"also\": [${also}],")
elseif(BUILT AND EXISTS "${BUILT}")
  file(READ "${BUILT}" built)
  string(REGEX MATCH "\n  \"also\": [^\n]*" also "${built}")
endif()
set(config "")
if(CONFIG)
  file(READ "${CONFIG}" config)
  if(CONFIG MATCHES "\\.yaml$")
    string(REPLACE "\\" "\\\\" config "${config}")
    string(REPLACE "\"" "\\\"" config "${config}")
    string(REPLACE "\n" "\\n" config "${config}")
    string(REPLACE "\t" "\\t" config "${config}")
    set(config "\"${config}\"")
  else()
    string(STRIP "${config}" config)
  endif()
  set(config "\n  \"config\": ${config},")
endif()
get_filename_component(folder ${LIBRARY} DIRECTORY)
get_filename_component(file ${LIBRARY} NAME)
get_filename_component(stem ${LIBRARY} NAME_WLE)
if(folder)
  string(APPEND folder /)
endif()
string(REPLACE "," "\", \"" memory "${MEMORY}")
set(requires "")
foreach(requirement libtorch=${TORCH} cuda=${CUDA})
  if(requirement MATCHES "^(.+)=(.+)$")
    list(APPEND requires "\"${CMAKE_MATCH_1}\": \"${CMAKE_MATCH_2}\"")
  endif()
endforeach()
list(JOIN requires ", " requires)
string(REPLACE "\\" "\\\\" VERIFY_CONFIG "${VERIFY_CONFIG}")
string(REPLACE "\"" "\\\"" VERIFY_CONFIG "${VERIFY_CONFIG}")
string(REPLACE "|" "\", \"" VERIFY_CONFIG "${VERIFY_CONFIG}")
if(VERIFY_CONFIG)
  set(VERIFY_CONFIG "\n  \"verify_config\": [\"${VERIFY_CONFIG}\"],")
endif()
file(WRITE ${folder}${stem}.hexad.json "{
  \"format\": 1,
  \"kind\": \"${KIND}\",
  \"name\": \"${NAME}\",
  \"version\": \"${VERSION}\",
  \"library\": \"${file}\",
  \"abi\": {\"major\": 1, \"min_host_minor\": ${MIN_HOST_MINOR}},
  \"arch\": \"${ARCH}\",${digest}
  \"memory\": [\"${memory}\"],
  \"requires\": {${requires}},${also}${VERIFY_CONFIG}${check}${config}
  \"license\": \"${LICENSE}\"
}
")
