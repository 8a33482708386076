# The reference BLAS and its testers, if they are installed, for tests. Debian's libblas3 and
# libblas-test have them in a folder of their own, next to which the system may use another BLAS.
# WGEMM_REFERENCE_BLAS_DIR is that folder.

if(EMSCRIPTEN OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux"
    OR CMAKE_CXX_FLAGS MATCHES "sanitize=thread")
  return()
endif()
set(WGEMM_REFERENCE_BLAS_DIR "/usr/lib/${CMAKE_CXX_LIBRARY_ARCHITECTURE}/blas" CACHE PATH
  "Folder of the reference BLAS and of its testers, which tests use if it exists")
set(_wgemm_reference "${WGEMM_REFERENCE_BLAS_DIR}/libblas.so.3")

# Random calls are compared with the reference.
if(EXISTS "${_wgemm_reference}")
  target_compile_definitions(wgemm_cblas_tests PRIVATE "WGEMM_TEST_BLAS=\"${_wgemm_reference}\"")
  target_link_libraries(wgemm_cblas_tests PRIVATE ${CMAKE_DL_LIBS})
endif()

# The testers load src/cblas as the libblas.so.3 that they were linked with.
if(NOT WGEMM_BLAS_FORTRAN OR NOT EXISTS "${WGEMM_REFERENCE_BLAS_DIR}/xdcblat3")
  return()
endif()
add_library(wgemm_blas_testers SHARED tests/native/blas_testers/library.cc)
set_target_properties(wgemm_blas_testers PROPERTIES
  OUTPUT_NAME blas SOVERSION 3 LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/blas_testers")
target_link_libraries(wgemm_blas_testers PRIVATE wgemm_options ${CMAKE_DL_LIBS}
  "$<LINK_LIBRARY:WHOLE_ARCHIVE,wgemm_cblas>")
# Else src/cblas would call the testers' xerbla_() and cblas_xerbla() directly.
target_link_options(wgemm_blas_testers PRIVATE -Wl,-Bsymbolic-functions)

set(_wgemm_preload "$<TARGET_FILE:wgemm_blas_testers>")
if(CMAKE_CXX_FLAGS MATCHES "sanitize=address")
  # The testers do not have the runtime of the sanitizers, which would also add bytes to variables
  # that a tester shares.
  target_compile_options(wgemm_blas_testers PRIVATE -fno-sanitize=all)
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}"
      "-print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so"
    OUTPUT_VARIABLE _wgemm_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(_wgemm_preload "${_wgemm_runtime}:${_wgemm_preload}")
endif()

function(_wgemm_add_blas_tester program type level interface preload)
  set(name wgemm_blas_testers_${program})
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" "-DTESTER=${WGEMM_REFERENCE_BLAS_DIR}/${program}"
    -DTYPE=${type} -DLEVEL=${level} -DINTERFACE=${interface} "-DPRELOAD=${preload}"
    "-DFOLDER=${PROJECT_BINARY_DIR}/blas_testers/${program}"
    -P "${PROJECT_SOURCE_DIR}/tests/native/blas_testers/run.cmake")
endfunction()

foreach(_wgemm_type s d)
  foreach(_wgemm_level 2 3)
    _wgemm_add_blas_tester(xblat${_wgemm_level}${_wgemm_type} ${_wgemm_type} ${_wgemm_level} fortran
      "${_wgemm_preload}")
    _wgemm_add_blas_tester(x${_wgemm_type}cblat${_wgemm_level} ${_wgemm_type} ${_wgemm_level} cblas
      "${_wgemm_preload}")
  endforeach()
  # They call every function of level 1. The functions that wgemm does not have are the reference's.
  if(EXISTS "${_wgemm_reference}")
    set(_wgemm_preload_1 "${_wgemm_preload}:${_wgemm_reference}")
    _wgemm_add_blas_tester(xblat1${_wgemm_type} ${_wgemm_type} 1 fortran "${_wgemm_preload_1}")
    _wgemm_add_blas_tester(x${_wgemm_type}cblat1 ${_wgemm_type} 1 cblas "${_wgemm_preload_1}")
  endif()
endforeach()
