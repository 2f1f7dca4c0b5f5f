# hexad_text(TARGET NAMESPACE::NAME FILE): the file, of the source tree, as `extern const char* const NAME`.
function(hexad_text target name file)
  string(REGEX MATCH "^(.*)::(.*)$" _ ${name})
  set(namespace ${CMAKE_MATCH_1})
  set(name ${CMAKE_MATCH_2})
  set(file ${CMAKE_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Made from @file@.
namespace @namespace@ {
extern const char* const @name@;
const char* const @name@ = R\"hexad(@text@)hexad\";
}
")
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
