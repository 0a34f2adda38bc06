# Writes the commit that SOURCE is at into OUT, as a string of C++, where that changed. "": no git, or
# files differ from the commit.
set(commit "")
set(git git -C ${SOURCE})
execute_process(COMMAND ${git} rev-parse --show-toplevel HEAD
  OUTPUT_VARIABLE at ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${git} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE changed RESULT_VARIABLE failed ERROR_QUIET)
file(REAL_PATH ${SOURCE} top)
if(failed EQUAL 0 AND changed STREQUAL "" AND at MATCHES "^(.*)\n([0-9a-f]+)$")
  if(CMAKE_MATCH_1 STREQUAL top) # not a repository that has the source inside
    set(commit ${CMAKE_MATCH_2})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "\"${commit}\"\n")
