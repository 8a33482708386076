# Installs for find_package(wgemm): the headers, two static libraries and the notices.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(_wgemm_package "${CMAKE_INSTALL_LIBDIR}/cmake/wgemm")

# A folder of its own, since others may install a dtypes.def too, which wgemm.h includes.
install(FILES src/include/cblas.h src/include/wgemm.h src/include/dtypes.def
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/wgemm")
install(FILES LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(TARGETS wgemm wgemm_cblas EXPORT wgemm ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/wgemm")
install(EXPORT wgemm NAMESPACE wgemm:: FILE wgemmTargets.cmake DESTINATION "${_wgemm_package}")
set(_wgemm_config [[include("${CMAKE_CURRENT_LIST_DIR}/wgemmTargets.cmake")]])
if(WGEMM_THREADS AND NOT EMSCRIPTEN)
  string(PREPEND _wgemm_config "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n")
endif()
file(CONFIGURE OUTPUT wgemmConfig.cmake CONTENT "${_wgemm_config}\n" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/wgemmConfig.cmake" DESTINATION "${_wgemm_package}")

# Before 1.0 any minor version may break compatibility.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/wgemmConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/wgemmConfigVersion.cmake" DESTINATION "${_wgemm_package}")
