# Runs a reference tester of BLAS with a library of ours, and fails unless the tester says that every
# function of ours has passed.
#   cmake -DTESTER=program -DTYPE=s|d -DLEVEL=1|2|3 -DINTERFACE=fortran|cblas -DPRELOAD=libraries
#     -DFOLDER=folder -P run.cmake
# PRELOAD: libraries that the tester loads first, separated by colons. FOLDER: for the files of the
# tester.

set(input "${FOLDER}/input")
file(WRITE "${FOLDER}/summary" "")

set(ours_2 gemv ger)
set(others_2 gbmv symv sbmv spmv trmv tbmv tpmv trsv tbsv tpsv syr spr syr2 spr2)
set(ours_3 gemm symm trmm trsm syrk syr2k)

# A line of the input: the name of a function in `width` columns, and T or F.
function(append_function variable name is_tested)
  if(INTERFACE STREQUAL "cblas")
    set(name "cblas_${TYPE}${name}")
    set(width 13)
  else()
    string(TOUPPER "${TYPE}${name}" name)
    set(width 7)
  endif()
  string(LENGTH "${name}" length)
  math(EXPR blanks "${width} - ${length}")
  string(REPEAT " " ${blanks} blanks)
  set(${variable} "${${variable}}${name}${blanks}${is_tested}\n" PARENT_SCOPE)
endfunction()

# The input of the testers of levels 2 and 3. The sizes are around the blocks of src/cblas; the testers
# know none above 65.
set(lines "")
if(INTERFACE STREQUAL "fortran")
  string(APPEND lines "'summary'\n6\n") # a file in FOLDER
endif()
string(APPEND lines "'SNAP'\n-1\nF\nF\nT\n") # no snapshots, no stop at a failure, wrong arguments
if(INTERFACE STREQUAL "cblas")
  string(APPEND lines "2\n") # both layouts
endif()
string(APPEND lines "16.0\n8\n0 1 2 3 5 16 35 65\n")
if(LEVEL EQUAL 2)
  string(APPEND lines "1\n0\n4\n1 2 -1 -2\n") # K of band matrices, increments
endif()
string(APPEND lines "3\n0.0 1.0 0.7\n3\n0.0 1.0 1.3\n") # alpha, beta
foreach(name IN LISTS ours_${LEVEL})
  append_function(lines ${name} T)
endforeach()
foreach(name IN LISTS others_${LEVEL})
  append_function(lines ${name} F)
endforeach()
file(WRITE "${input}" "${lines}")

execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env "LD_PRELOAD=${PRELOAD}" ASAN_OPTIONS=detect_leaks=0
    "${TESTER}"
  WORKING_DIRECTORY "${FOLDER}"
  INPUT_FILE "${input}"
  OUTPUT_VARIABLE output
  ERROR_VARIABLE errors
  RESULT_VARIABLE result)
file(READ "${FOLDER}/summary" summary)
string(APPEND output "${summary}")
message("${output}")

set(faults "")
if(NOT result EQUAL 0)
  list(APPEND faults "its exit status is ${result}")
endif()
# The Fortran runtime notes floating-point exceptions, also of vector lanes that nothing reads.
string(REGEX REPLACE "Note: The following floating-point exceptions [^\n]*\n" "" errors "${errors}")
# The tester writes an error, or the loader does, if it could not load a library of PRELOAD.
if(NOT errors STREQUAL "")
  list(APPEND faults "it wrote to the standard error output: ${errors}")
endif()
foreach(word FAIL SUSPECT ABANDONED "ERROR IN" "INSTEAD OF")
  if(output MATCHES "${word}")
    list(APPEND faults "it says ${word}")
  endif()
endforeach()

macro(expect text)
  if(NOT output MATCHES "${text}")
    list(APPEND faults "it does not say '${text}'")
  endif()
endmacro()

if(LEVEL EQUAL 1)
  foreach(name dot axpy nrm2 scal)
    string(TOUPPER "${TYPE}${name}" name)
    expect("${name} *\n *----- PASS -----")
  endforeach()
elseif(INTERFACE STREQUAL "cblas")
  foreach(name IN LISTS ours_${LEVEL})
    expect("cblas_${TYPE}${name} +PASSED THE TESTS OF ERROR-EXITS")
    expect("cblas_${TYPE}${name} +PASSED THE COLUMN-MAJOR COMPUTATIONAL TESTS")
    expect("cblas_${TYPE}${name} +PASSED THE ROW-MAJOR +COMPUTATIONAL TESTS")
  endforeach()
else()
  foreach(name IN LISTS ours_${LEVEL})
    string(TOUPPER "${TYPE}${name}" name)
    expect("${name} +PASSED THE TESTS OF ERROR-EXITS")
    expect("${name} +PASSED THE COMPUTATIONAL TESTS")
  endforeach()
endif()
if(faults)
  list(JOIN faults "\n  " faults)
  message(FATAL_ERROR "The tester ${TESTER} fails:\n  ${faults}")
endif()
