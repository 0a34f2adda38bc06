# CPack: one .deb a group of components. packaging/build runs it.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME waybill)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_ERROR_ON_ABSOLUTE_INSTALL_DESTINATION OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/finish.cmake)
set(debian_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})

# Packages of libraries have the soname's version in their names: those of two series can be installed.
set(WAYBILL_LIBRARY libwaybill${WAYBILL_CXX_ABI})
set(WAYBILL_C_LIBRARY libwaybill-c${WAYBILL_C_ABI})

set(WAYBILL_UNITS ${units})
list(JOIN WAYBILL_UNITS " " WAYBILL_UNITS)
# What runs on: timers, and services that are not run by one.
set(WAYBILL_RUNNING_UNITS ${units})
foreach(unit ${units})
  if(unit MATCHES "^(.*)[.]timer$")
    list(REMOVE_ITEM WAYBILL_RUNNING_UNITS ${CMAKE_MATCH_1}.service)
  endif()
endforeach()
list(JOIN WAYBILL_RUNNING_UNITS " " WAYBILL_RUNNING_UNITS)

# waybill_package(NAME SECTION FOLDER COMPONENTS … DEPENDS … SUGGESTS … SUMMARY … TEXT …). FOLDER: below
# debian/; NAME, if not given.
function(waybill_package name section)
  cmake_parse_arguments(of "" "FOLDER;DEPENDS;SUGGESTS;SUMMARY;TEXT" "COMPONENTS" ${ARGN})
  string(TOUPPER ${name} group)
  set(folder ${name})
  if(of_FOLDER)
    set(folder ${of_FOLDER})
  endif()
  # Its own copyright and changelog. finish.cmake makes the changelog.
  set(doc share/doc/${name})
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/debian/copyright DESTINATION ${doc}
    COMPONENT ${name}-doc EXCLUDE_FROM_ALL)
  configure_file(debian/${folder}/lintian-overrides debian/${name}/lintian-overrides @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/debian/${name}/lintian-overrides
    DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${name}-doc EXCLUDE_FROM_ALL)
  set(control)
  foreach(part preinst postinst prerm postrm shlibs triggers)
    set(from ${CMAKE_CURRENT_SOURCE_DIR}/debian/${folder}/${part})
    if(EXISTS ${from})
      configure_file(${from} debian/${name}/${part} @ONLY)
      list(APPEND control ${CMAKE_CURRENT_BINARY_DIR}/debian/${name}/${part})
    endif()
  endforeach()
  if(name STREQUAL waybill AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/config.toml)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/debian/${name}/conffiles "/etc/waybill/config.toml\n")
    list(APPEND control ${CMAKE_CURRENT_BINARY_DIR}/debian/${name}/conffiles)
  endif()
  foreach(component ${of_COMPONENTS} ${name}-doc)
    string(TOUPPER ${component} upper)
    set(CPACK_COMPONENT_${upper}_GROUP ${name} PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${of_COMPONENTS} ${name}-doc PARENT_SCOPE)
  set(CPACK_COMPONENT_GROUP_${group}_DESCRIPTION "${of_SUMMARY}\n${of_TEXT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_DESCRIPTION "${of_SUMMARY}\n${of_TEXT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_DEPENDS "${of_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_SUGGESTS "${of_SUGGESTS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  set(CPACK_DEBIAN_${group}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)
endfunction()

set(CPACK_COMPONENTS_ALL)
waybill_package(${WAYBILL_LIBRARY} libs FOLDER libwaybill COMPONENTS runtime
  SUMMARY "store of a Kubernetes node's image pull records, C++ library"
  TEXT "waybill keeps which image was pulled with whose credentials, which pulls were
in flight when the node went down, and which host IDs belong to which pod. It
gives the kubelet's answers, on LMDB, and knows when something was lost.
This is its C++ library.")
waybill_package(${WAYBILL_C_LIBRARY} libs FOLDER libwaybill-c COMPONENTS c
  SUMMARY "store of a Kubernetes node's image pull records, C library"
  TEXT "waybill keeps which image was pulled with whose credentials, which pulls were
in flight when the node went down, and which host IDs belong to which pod. It
gives the kubelet's answers, on LMDB, and knows when something was lost.
This is its library for C and for languages that call C.")
waybill_package(libwaybill-dev libdevel COMPONENTS dev
  DEPENDS "${WAYBILL_LIBRARY} (= ${debian_version}), ${WAYBILL_C_LIBRARY} (= ${debian_version}), libexpected-dev, liblmdb-dev, libssl-dev, libxxhash-dev"
  SUGGESTS "pkg-config, cmake"
  SUMMARY "store of a Kubernetes node's image pull records, to build with"
  TEXT "waybill keeps which image was pulled with whose credentials, which pulls were
in flight when the node went down, and which host IDs belong to which pod.
These are its headers for C++ and C, its static libraries, and the files by
which CMake and pkg-config find them.")
# procps: waybill-guard.service reloads by /bin/kill.
waybill_package(waybill admin COMPONENTS command system
  DEPENDS "procps"
  SUGGESTS "containerd | cri-o, uidmap"
  SUMMARY "store of a Kubernetes node's image pull records"
  TEXT "waybill keeps which image was pulled with whose credentials, which pulls were
in flight when the node went down, and which host IDs belong to which pod. A
guard beside an unmodified kubelet closes what that kubelet would open without
a proof.
This is the command, with its systemd units. Installing it starts and enables
none of them. Removing it leaves every store where it is.")
waybill_package(waybill-bench utils COMPONENTS bench
  SUMMARY "benchmarks of waybill on the machine that runs them"
  TEXT "What waybill costs on this machine's disk, beside bare LMDB and other ways to
keep the same records, and how large store and map must be for a node.")

get_property(targets DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
add_custom_target(waybill_packages)
foreach(target waybill_shared waybill_static waybill_c waybill_c_static waybill_cli waybill_docs
    waybill_bench)
  if(TARGET ${target})
    add_dependencies(waybill_packages ${target})
  endif()
endforeach()
include(CPack)
