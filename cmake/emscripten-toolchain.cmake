# Finds Emscripten, as scripts/emscripten.mjs does, and includes its own toolchain file.
#   WGEMM_EMSCRIPTEN_ROOT  (variable or environment) the folder of emcc; default: EMSDK, emcc on
#                          PATH, the project's cache

set(_wgemm_oldest_emscripten 3.1.69)

if(NOT WGEMM_EMSCRIPTEN_ROOT)
  include("${CMAKE_CURRENT_LIST_DIR}/cache.cmake")
  file(GLOB _wgemm_cached "${_wgemm_cache}/emscripten-*/usr/share/emscripten")
  find_program(_wgemm_emcc emcc NO_CACHE)
  if(_wgemm_emcc)
    file(REAL_PATH "${_wgemm_emcc}" _wgemm_emcc)
    cmake_path(GET _wgemm_emcc PARENT_PATH _wgemm_on_path)
  endif()

  foreach(_wgemm_folder
      IN ITEMS "$ENV{WGEMM_EMSCRIPTEN_ROOT}" "$ENV{EMSDK}/upstream/emscripten" "${_wgemm_on_path}"
      LISTS _wgemm_cached)
    if(EXISTS "${_wgemm_folder}/emscripten-version.txt")
      file(READ "${_wgemm_folder}/emscripten-version.txt" _wgemm_version)
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _wgemm_version "${_wgemm_version}")
      if(_wgemm_version VERSION_GREATER_EQUAL _wgemm_oldest_emscripten)
        set(WGEMM_EMSCRIPTEN_ROOT "${_wgemm_folder}" CACHE PATH "The folder that holds emcc")
        break()
      endif()
    endif()
  endforeach()
  if(NOT WGEMM_EMSCRIPTEN_ROOT)
    message(FATAL_ERROR "No Emscripten of version ${_wgemm_oldest_emscripten} or later: "
      "run `npm run build`, or set EMSDK.")
  endif()
endif()
# CMake's own trial compilations read this file again, without the cache.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WGEMM_EMSCRIPTEN_ROOT)

# The Node of the scripts. The one on PATH may lack instructions that the tests and EMBIND_AOT need:
# EMBIND_AOT runs the module when it is linked.
set(_wgemm_node "${CMAKE_CURRENT_LIST_DIR}/../node_modules/node/bin/node")
string(APPEND _wgemm_node "${CMAKE_HOST_EXECUTABLE_SUFFIX}")
if(EXISTS "${_wgemm_node}")
  file(REAL_PATH "${_wgemm_node}" _wgemm_node)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${_wgemm_node}" CACHE FILEPATH "Runs the wasm test programs")
  set(CMAKE_C_LINKER_LAUNCHER "${CMAKE_COMMAND}" -E env "EM_NODE_JS=${_wgemm_node}")
  if(NOT CMAKE_HOST_WIN32)  # there emcc is a .bat, which needs a shell
    list(APPEND CMAKE_C_LINKER_LAUNCHER
      "${_wgemm_node}" "${CMAKE_CURRENT_LIST_DIR}/../scripts/cached-link.mjs")
  endif()
  set(CMAKE_CXX_LINKER_LAUNCHER ${CMAKE_C_LINKER_LAUNCHER})
endif()

include("${WGEMM_EMSCRIPTEN_ROOT}/cmake/Modules/Platform/Emscripten.cmake")

# Compiler caches do not recognize emcc, a script. ccache is told that it is Clang, and what decides
# its output. Other caches are not used.
set(_wgemm_check "${EMSCRIPTEN_VERSION} ${CMAKE_C_COMPILER_VERSION} $ENV{EMCC_CFLAGS}")
foreach(_wgemm_language C CXX)
  set(_wgemm_launcher "CMAKE_${_wgemm_language}_COMPILER_LAUNCHER")
  if(NOT CMAKE_HOST_WIN32 AND "$ENV{${_wgemm_launcher}}" MATCHES "(^|/)ccache$")
    set(${_wgemm_launcher} "${CMAKE_COMMAND}" -E env CCACHE_COMPILERTYPE=clang
      "CCACHE_COMPILERCHECK=string:${_wgemm_check}"
      "$ENV{${_wgemm_launcher}}")
  else()
    unset(ENV{${_wgemm_launcher}})
  endif()
endforeach()

# Emscripten's C library has threads. CMake would compile and link a program to find out.
set(CMAKE_HAVE_LIBC_PTHREAD TRUE)
