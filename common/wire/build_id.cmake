# Writes OUTPUT with the version and commit when they have changed. Run at every build: a commit must not need a new
# configure.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=10 HEAD OUTPUT_VARIABLE COMMIT
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE FAILED)
set(BUILD_ID "${VERSION}")
if(NOT FAILED)
  set(BUILD_ID "${VERSION} (${COMMIT})")
endif()
set(TEXT "#define BRIGADE_BUILD_ID \"${BUILD_ID}\"\n")
set(OLD "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} OLD)
endif()
if(NOT OLD STREQUAL TEXT)
  file(WRITE ${OUTPUT} "${TEXT}")
endif()
