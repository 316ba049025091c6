# One room of the house: a static library orrery_NAME (alias orrery::NAME) and its tests.
#
#   orrery_room(units
#     SOURCES text.cpp
#     DEPENDS core                # rooms of lower floors, by name
#     LIBRARIES fmt::fmt          # packages, visible to users of the room
#     PRIVATE_LIBRARIES yaml-cpp  # packages that only the sources see
#     TESTS text_test.cpp)        # one binary NAME_test, one ctest entry
#
# A room without SOURCES is a header-only (INTERFACE) target.
function(orrery_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "SOURCES;DEPENDS;LIBRARIES;PRIVATE_LIBRARIES;TESTS")
  if(room_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "orrery_room(${name}): unknown arguments ${room_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM room_DEPENDS PREPEND orrery::)
  set(target orrery_${name})
  if(room_SOURCES)
    add_library(${target} STATIC ${room_SOURCES})
    target_include_directories(${target} PUBLIC ${ORRERY_INCLUDE_ROOT})
    target_link_libraries(${target}
      PUBLIC ${room_DEPENDS} ${room_LIBRARIES}
      PRIVATE orrery_warnings ${room_PRIVATE_LIBRARIES})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${ORRERY_INCLUDE_ROOT})
    target_link_libraries(${target} INTERFACE ${room_DEPENDS} ${room_LIBRARIES})
  endif()
  add_library(orrery::${name} ALIAS ${target})
  if(room_TESTS AND BUILD_TESTING)
    orrery_test(${name}_test SOURCES ${room_TESTS} LIBRARIES ${target})
  endif()
endfunction()

# A GoogleTest and RapidCheck binary that ctest runs as one entry, from the root of the repository.
function(orrery_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE orrery_warnings ${test_LIBRARIES}
    GTest::gmock_main rapidcheck)
  add_test(NAME ${name}
    COMMAND ${name} --gtest_brief=1
            --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    # A fixed seed: what failed once fails again.
    ENVIRONMENT "ORRERY_DATA=${PROJECT_SOURCE_DIR}/data;RC_PARAMS=seed=7 max_success=300"
    TIMEOUT 600)
endfunction()

# A Google Benchmark binary NAME_bench from NAME_bench.cpp.
function(orrery_bench name)
  add_executable(${name}_bench ${name}_bench.cpp)
  target_link_libraries(${name}_bench PRIVATE orrery_warnings ${ARGN} benchmark::benchmark_main)
endfunction()
