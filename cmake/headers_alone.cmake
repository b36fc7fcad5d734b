# Target headers_alone: each header compiles by itself, with the project's warnings. Not part of a plain build; the test
# of the same name builds it. Objects without code, so that ccache and ninja remember what has passed. A header that its
# own source includes first is proved by that source and left out.
set(HEADER_FOLDERS common kernels router shard_worker clients tools tests)
list(TRANSFORM HEADER_FOLDERS APPEND "/*.h" OUTPUT_VARIABLE HEADER_PATTERNS)
list(TRANSFORM HEADER_PATTERNS PREPEND "${PROJECT_SOURCE_DIR}/")
file(GLOB_RECURSE HEADERS CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${HEADER_PATTERNS})

set(HEADER_SOURCES)
foreach(header IN LISTS HEADERS)
  string(REGEX REPLACE "\\.h$" ".cpp" own_source ${PROJECT_SOURCE_DIR}/${header})
  if(EXISTS ${own_source})
    file(STRINGS ${own_source} includes REGEX "^#include" LIMIT_COUNT 1)
    if(includes STREQUAL "#include \"${header}\"")
      continue()
    endif()
  endif()
  set(source ${PROJECT_BINARY_DIR}/headers_alone/${header}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "#include \"${header}\"\n")
  endif()
  list(APPEND HEADER_SOURCES ${source})
endforeach()
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${HEADER_SOURCES})
target_link_libraries(headers_alone PRIVATE brigade_options fb_schemas)
target_compile_options(headers_alone PRIVATE -O0 -g0)

if(BRIGADE_TESTS)
  add_test(NAME headers_alone
    COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target headers_alone --parallel 2)
  set_tests_properties(headers_alone PROPERTIES TIMEOUT 900 RUN_SERIAL ON)
endif()
