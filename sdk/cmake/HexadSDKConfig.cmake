# find_package(HexadSDK): the target Hexad::sdk (headers), hexad_add_plugin(), and HEXAD_VERIFY and HEXAD_MANIFEST, the
# programs of the conformance kit and of CONFIG, if this SDK has them.
get_filename_component(hexad_sdk_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
if(NOT TARGET Hexad::sdk)
  add_library(Hexad::sdk INTERFACE IMPORTED)
  target_include_directories(Hexad::sdk INTERFACE "${hexad_sdk_prefix}/include")
endif()
find_program(HEXAD_VERIFY hexad-verify PATHS "${hexad_sdk_prefix}/bin" NO_DEFAULT_PATH DOC
  "Runs as the test verify_<plugin>")
find_program(HEXAD_MANIFEST hexad-manifest PATHS "${hexad_sdk_prefix}/bin" NO_DEFAULT_PATH DOC
  "Checks a plugin's keys.yaml")
include("${CMAKE_CURRENT_LIST_DIR}/HexadPlugin.cmake")
