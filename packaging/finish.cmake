# Run by CPack on the files of all packages: what Debian wants stripped or compressed, the same bytes
# each time. `build` made the changelog.
set(files ${CPACK_TEMPORARY_DIRECTORY}/*/usr)

macro(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

file(GLOB_RECURSE copyrights ${files}/share/doc/*/copyright)
foreach(copyright ${copyrights})
  get_filename_component(doc ${copyright} DIRECTORY)
  configure_file(${CPACK_WAYBILL_CHANGELOG} ${doc}/changelog.Debian COPYONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  run(gzip -9n ${doc}/changelog.Debian)
endforeach()

file(GLOB_RECURSE pages ${files}/share/man/man[1-9]/*.[1-9])
foreach(page ${pages})
  run(gzip -9n ${page})
endforeach()

set(notes --remove-section=.comment --remove-section=.note)
file(GLOB_RECURSE programs ${files}/bin/waybill ${files}/libexec/*)
foreach(program ${programs})
  run(strip --strip-all ${notes} ${program})
endforeach()
file(GLOB_RECURSE libraries ${files}/lib/*.so.*)
foreach(library ${libraries})
  if(NOT IS_SYMLINK ${library})
    run(strip --strip-unneeded ${notes} ${library})
  endif()
endforeach()
file(GLOB_RECURSE archives ${files}/lib/*.a)
foreach(archive ${archives})
  run(strip --strip-debug --enable-deterministic-archives ${notes} ${archive})
endforeach()
