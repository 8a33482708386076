# Third-party code, all of it as pinned sources. Each comes from the first of these that exists: a
# folder that you name, the cache of scripts/setup.mjs or the system, the dependency's repository.
# With FETCHCONTENT_FULLY_DISCONNECTED nothing is downloaded.
#   XNNPACK_SOURCE_DIR  GOOGLETEST_SOURCE_DIR  SIMDE_INCLUDE_DIR
#
# Targets:
#   wgemm_simd     <wasm_simd128.h>: the compiler's in a wasm build, SIMDe's in a native one
#   wgemm_xnnpack  with WGEMM_XNNPACK: only the micro-kernels that src/kernels/ registers
# Function:
#   wgemm_add_googletest()  adds the targets of GoogleTest, for tests

include_guard()
include(FetchContent)
enable_language(C)

include("${CMAKE_CURRENT_LIST_DIR}/cache.cmake")

# Sets <variable> to the folder of a dependency: the one that the user names, else <local> if it
# exists, else <commit> of <repository>. Only that commit is downloaded, by its hash: the hash is
# the pin, and XNNPACK's whole history would be hundreds of megabytes.
function(_wgemm_locate variable local repository commit)
  set(${variable} "$ENV{${variable}}" CACHE PATH
    "Sources of ${repository}; empty: found or downloaded")
  if(${variable})
    if(NOT IS_DIRECTORY "${${variable}}")
      message(FATAL_ERROR
        "${variable} is ${${variable}}, which is not a folder: correct it, or unset it.")
    endif()
    return()
  endif()
  if(EXISTS "${local}")
    set(${variable} "${local}" PARENT_SCOPE)
    return()
  endif()
  if(FETCHCONTENT_FULLY_DISCONNECTED)
    message(FATAL_ERROR "${variable} is not set, and FETCHCONTENT_FULLY_DISCONNECTED forbids "
      "downloads: set it to a folder with the sources of ${repository}, commit ${commit}.")
  endif()
  find_package(Git REQUIRED QUIET)
  string(TOLOWER "${variable}" name)
  FetchContent_Declare(
    ${name}
    DOWNLOAD_COMMAND "${GIT_EXECUTABLE}" -C <SOURCE_DIR> init -q
    COMMAND "${GIT_EXECUTABLE}" -C <SOURCE_DIR> fetch -q --depth 1 "${repository}" "${commit}"
    COMMAND "${GIT_EXECUTABLE}" -C <SOURCE_DIR> -c advice.detachedHead=false checkout -q FETCH_HEAD
    SOURCE_SUBDIR none) # only populates: its CMakeLists.txt is not read
  message(STATUS "Downloading ${repository}; without network, set ${variable} to its sources")
  FetchContent_MakeAvailable(${name})
  set(${variable} "${${name}_SOURCE_DIR}" PARENT_SCOPE)
endfunction()

# --- SIMD -----------------------------------------------------------------------------------------

add_library(wgemm_simd INTERFACE)
if(EMSCRIPTEN)
  target_compile_options(wgemm_simd INTERFACE -msimd128 $<$<BOOL:${WGEMM_RELAXED}>:-mrelaxed-simd>)
else()
  find_path(SIMDE_INCLUDE_DIR simde/wasm/simd128.h)
  if(SIMDE_INCLUDE_DIR)
    set(_wgemm_simde "${SIMDE_INCLUDE_DIR}")
  else()
    _wgemm_locate(SIMDE_SOURCE_DIR ""
      https://github.com/simd-everywhere/simde 71fd833d9666141edcd1d3c109a80e228303d8d7) # 0.8.2
    set(_wgemm_simde "${SIMDE_SOURCE_DIR}")
  endif()
  # As system headers, since warnings in SIMDe are not ours. They come before the compiler's own
  # <wasm_simd128.h>, which every clang has.
  target_include_directories(wgemm_simd SYSTEM INTERFACE
    "${PROJECT_SOURCE_DIR}/src/kernels/simd" "${_wgemm_simde}")
endif()

# --- XNNPACK --------------------------------------------------------------------------------------

if(WGEMM_XNNPACK)
  _wgemm_locate(XNNPACK_SOURCE_DIR "${_wgemm_cache}/xnnpack-4ea82e5"
    https://github.com/google/XNNPACK 4ea82e595b36106653175dcb04b2aa532660d0d8)
  # An object, so that libwgemm.a is the only library to install. Its source includes XNNPACK's.
  add_library(wgemm_xnnpack OBJECT "${PROJECT_SOURCE_DIR}/src/kernels/f32_xnnpack_tiles.c")
  set_target_properties(wgemm_xnnpack PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(wgemm_xnnpack PUBLIC wgemm_simd)
  target_include_directories(wgemm_xnnpack SYSTEM PUBLIC
    "${XNNPACK_SOURCE_DIR}/include" "${XNNPACK_SOURCE_DIR}/src"
    "${PROJECT_SOURCE_DIR}/src/kernels/xnnpack")
  target_include_directories(wgemm_xnnpack PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(wgemm_xnnpack PRIVATE
    -w # not our code
    -ffp-contract=off # the kernels' results do not depend on the compiler
    $<$<NOT:$<CONFIG:Debug>>:-O3>
    # SLP vectorization would undo the kernels' own choice of vectors.
    $<$<C_COMPILER_ID:Clang,AppleClang>:-fno-slp-vectorize>)
  target_compile_definitions(wgemm_xnnpack PRIVATE
    $<$<NOT:$<CONFIG:Debug>>:NDEBUG> WGEMM_RELAXED=$<BOOL:${WGEMM_RELAXED}>)
endif()

# --- GoogleTest -----------------------------------------------------------------------------------

macro(wgemm_add_googletest)
  _wgemm_locate(GOOGLETEST_SOURCE_DIR /usr/src/googletest
    https://github.com/google/googletest b514bdc898e2951020cbdca1304b75f5950d1f59) # 1.15.2
  set(INSTALL_GTEST OFF)
  set(BUILD_GMOCK OFF)
  set(CMAKE_DISABLE_FIND_PACKAGE_Python ON) # GoogleTest's own tests need it
  add_subdirectory("${GOOGLETEST_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/googletest"
    EXCLUDE_FROM_ALL SYSTEM)
endmacro()
