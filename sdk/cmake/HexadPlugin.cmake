# hexad_add_plugin(NAME my_loss KIND loss SOURCES a.c ... [VERSION 1.0.0] [MEMORY host cuda] [TORCH 2.11.0] [LIBS libs...])
#
# Builds lib/hexad/plugins/lib<NAME>.so with the single exported symbol hexad_plugin_query_v1 and writes the manifest
# lib<NAME>.hexad.json beside it. First-party plugins and a stranger's are built by this same function.
function(hexad_add_plugin)
  cmake_parse_arguments(arg "" "NAME;KIND;VERSION;TORCH;LICENSE" "SOURCES;MEMORY;LIBS" ${ARGN})
  foreach(needed NAME KIND SOURCES)
    if(NOT arg_${needed})
      message(FATAL_ERROR "hexad_add_plugin: ${needed} is missing")
    endif()
  endforeach()
  foreach(default VERSION=1.0.0 LICENSE=Apache-2.0 MEMORY=host)
    string(REPLACE "=" ";" default ${default})
    list(GET default 0 key)
    list(GET default 1 value)
    if(NOT arg_${key})
      set(arg_${key} ${value})
    endif()
  endforeach()

  set(target hexad_plugin_${arg_NAME})
  set(folder ${CMAKE_BINARY_DIR}/lib/hexad/plugins)
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE hexad_sdk ${arg_LIBS})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME} PREFIX lib
    LIBRARY_OUTPUT_DIRECTORY ${folder} C_VISIBILITY_PRESET hidden)
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--build-id)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  string(REPLACE ";" "," memory "${arg_MEMORY}")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DLIBRARY=$<TARGET_FILE:${target}> -DKIND=${arg_KIND} -DNAME=${arg_NAME}
      -DVERSION=${arg_VERSION} -DMEMORY=${memory} -DTORCH=${arg_TORCH} -DLICENSE=${arg_LICENSE} -DARCH=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu
      -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/write_manifest.cmake
    VERBATIM)
endfunction()
