# find_package(Reprise) gives Reprise::reprise; COMPONENTS text gives Reprise::text too, and COMPONENTS engine Reprise::engine with it, and
# COMPONENTS functions Reprise::functions, which stands on all of them.
# pkg-config knows them as reprise, reprise-text and reprise-engine.
include(CMakePackageConfigHelpers)

set(made ${PROJECT_BINARY_DIR}/package)  # in a folder of its own: the build directory may be on somebody's PATH, where CMake looks
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS reprise EXPORT RepriseTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT RepriseTargets NAMESPACE Reprise:: DESTINATION ${package_dir})
if(TARGET reprise_text)
  install(TARGETS reprise_text EXPORT RepriseTextTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT RepriseTextTargets NAMESPACE Reprise:: DESTINATION ${package_dir})
endif()
if(TARGET reprise_engine)
  install(TARGETS reprise_engine EXPORT RepriseEngineTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT RepriseEngineTargets NAMESPACE Reprise:: DESTINATION ${package_dir})
endif()
if(TARGET reprise_functions)
  install(TARGETS reprise_functions EXPORT RepriseFunctionsTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT RepriseFunctionsTargets NAMESPACE Reprise:: DESTINATION ${package_dir})
endif()
if(TARGET reprise_cli)
  install(TARGETS reprise_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/RepriseConfig.cmake.in ${made}/RepriseConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${made}/RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/RepriseConfig.cmake ${made}/RepriseConfigVersion.cmake DESTINATION ${package_dir})

# Relative, so that the files stay right wherever the package is put.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE pkgconfig_to_prefix)
set(packages reprise)
if(TARGET reprise_text)
  list(APPEND packages reprise-text)
endif()
if(TARGET reprise_engine)
  list(APPEND packages reprise-engine)
endif()
foreach(package IN LISTS packages)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${made}/${package}.pc @ONLY)
  install(FILES ${made}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
