# hexad_add_plugin(NAME my_loss KIND loss SOURCES a.c ... [VERSION 1.0.0] [LICENSE Apache-2.0] [MEMORY host cuda]
#                  [TARGET_MINOR 0] [TORCH 2.11.0] [SHARED_CXX] [LIBS libs...] [VERIFY_CONFIG key=value ...])
#
# Builds lib/hexad/plugins/lib<NAME>.so with the single exported symbol hexad_plugin_query_v1 and writes the manifest
# lib<NAME>.hexad.json beside it; `cmake --install` puts both under the same path of the prefix. First-party plugins and
# a stranger's are built by this same function.
#
#   MEMORY        what the plugin's tensors may live in; default: cuda if a source is a .cu file, else host
#   TARGET_MINOR  the lowest minor of the ABI that a host must have; abi.h hides what is newer. KIND environment: 1
#   TORCH         the LibTorch that it is built with, which a host process must have too
#   SHARED_CXX    LIBS hold shared C++ libraries: take libstdc++ from the system as they do. TORCH implies it. Without
#                 it libstdc++ is linked in, so that the plugin runs where the system's is older; but with a copy of its
#                 own it could not catch what a shared library throws
#   VERIFY_CONFIG keys of plugin_config without which no instance can be made, for the conformance kit; values are JSON
#                 or texts without '|', {dir} in them the folder of the plugin. They go into the manifest
#
# If HEXAD_VERIFY names the conformance kit's program (find_package sets it), ctest gets the test verify_<NAME>.
function(hexad_add_plugin)
  cmake_parse_arguments(arg "SHARED_CXX" "NAME;KIND;VERSION;LICENSE;TARGET_MINOR;TORCH" "SOURCES;MEMORY;LIBS;VERIFY_CONFIG" ${ARGN})
  foreach(needed NAME KIND SOURCES)
    if(NOT arg_${needed})
      message(FATAL_ERROR "hexad_add_plugin: ${needed} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "hexad_add_plugin(${arg_NAME}): no such argument: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]+$")
    message(FATAL_ERROR "hexad_add_plugin: NAME ${arg_NAME} must be a-z first, then a-z, 0-9 and _")
  endif()
  if("${arg_VERIFY_CONFIG}" MATCHES "\\|")  # which parts them on the way to the manifest
    message(FATAL_ERROR "hexad_add_plugin(${arg_NAME}): VERIFY_CONFIG ${arg_VERIFY_CONFIG} has a '|', which none of them may hold")
  endif()
  set(memory host)
  set(cuda "")
  if("${arg_SOURCES}" MATCHES "\\.cu(;|$)")
    set(memory cuda)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+" cuda "${CMAKE_CUDA_COMPILER_VERSION}")
  endif()
  foreach(default VERSION=1.0.0 LICENSE=Apache-2.0 MEMORY=${memory} TARGET_MINOR=0)
    string(REGEX MATCH "^([A-Z_]+)=(.*)" default ${default})
    if(NOT DEFINED arg_${CMAKE_MATCH_1})
      set(arg_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()

  set(target hexad_plugin_${arg_NAME})
  set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE Hexad::sdk ${arg_LIBS})
  target_compile_definitions(${target} PRIVATE HEXAD_TARGET_MINOR=${arg_TARGET_MINOR})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME} PREFIX lib
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/hexad/plugins
    C_VISIBILITY_PRESET hidden LINK_DEPENDS ${here}/plugin.map BUILD_WITH_INSTALL_RPATH ON)
  target_link_options(${target} PRIVATE LINKER:--version-script=${here}/plugin.map
    LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack LINKER:-z,nodelete LINKER:--build-id)
  if(arg_TORCH OR arg_SHARED_CXX)
    # From the start as it is installed: changing it later would change the digest in the manifest.
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../..")
  else()
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
    target_link_options(${target} PRIVATE LINKER:-z,defs LINKER:--exclude-libs,ALL -static-libgcc
      $<$<LINK_LANGUAGE:CXX,CUDA>:-static-libstdc++>)
  endif()

  string(REPLACE ";" "," memory "${arg_MEMORY}")
  string(REPLACE ";" "|" verify_config "${arg_VERIFY_CONFIG}")
  set(write_manifest ${CMAKE_COMMAND} -DKIND=${arg_KIND} -DNAME=${arg_NAME} -DVERSION=${arg_VERSION}
    -DMIN_HOST_MINOR=${arg_TARGET_MINOR} -DMEMORY=${memory} -DTORCH=${arg_TORCH} -DCUDA=${cuda}
    -DLICENSE=${arg_LICENSE} -DARCH=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${write_manifest} -DVERIFY_CONFIG=${verify_config} -DLIBRARY=$<TARGET_FILE:${target}> -P ${here}/write_manifest.cmake)
  install(TARGETS ${target} LIBRARY DESTINATION lib/hexad/plugins)
  # Anew, for `cmake --install --strip` changes the library.
  list(JOIN write_manifest "\" \"" write_manifest)
  string(REPLACE "\"" "\\\"" verify_config "${verify_config}")
  install(CODE "execute_process(COMMAND \"${write_manifest}\" \"-DVERIFY_CONFIG=${verify_config}\"
    \"-DLIBRARY=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/hexad/plugins/lib${arg_NAME}.so\"
    -P \"${here}/write_manifest.cmake\" COMMAND_ERROR_IS_FATAL ANY)")

  if(HEXAD_VERIFY)
    add_test(NAME verify_${arg_NAME} COMMAND ${HEXAD_VERIFY} $<TARGET_FILE:${target}>)
  endif()
endfunction()
