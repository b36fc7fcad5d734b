# Compiler set-up shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# -g1: line tables only; full debug information triples build time and size.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

add_library(brigade_options INTERFACE)
target_include_directories(brigade_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
# -ffp-contract=off: every fused multiply-add is written out, so that a row's bits do not depend on the compiler.
target_compile_options(brigade_options INTERFACE -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers -ffp-contract=off)
target_compile_definitions(brigade_options INTERFACE $<$<BOOL:${BRIGADE_CHECKS}>:BRIGADE_CHECKS=1>)
if(BRIGADE_SANITIZE STREQUAL "address")
  # CAF's init_fun_factory binds a null tuple on each spawn without arguments: "null" would report that alone.
  set(SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(BRIGADE_SANITIZE STREQUAL "thread")
  # -Wno-tsan: Boost.Asio has fences, which g++ says it does not follow.
  set(SANITIZE_FLAGS -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()
if(BRIGADE_FUZZ)
  list(APPEND SANITIZE_FLAGS -fsanitize=fuzzer-no-link)
endif()
if(SANITIZE_FLAGS)
  # The kernels' translation units take four CPU minutes each when instrumented at -O2.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  # Instrumented code makes g++ 12 see uninitialised uses in std::variant that are not there.
  target_compile_options(brigade_options INTERFACE ${SANITIZE_FLAGS}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(brigade_options INTERFACE ${SANITIZE_FLAGS})
endif()
find_package(Threads REQUIRED)
target_link_libraries(brigade_options INTERFACE Threads::Threads)
