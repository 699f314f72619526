# SPDX-License-Identifier: Apache-2.0
# Flags that hold for every target of ours, kept apart from those of imported libraries.
add_library(mc_options INTERFACE)
# Members that a designated initializer leaves out have their defaults: that is no fault.
target_compile_options(mc_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  -Wno-missing-field-initializers)
# The programs name no place of the machine that built them, in any target.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(MC_WERROR)
  target_compile_options(mc_options INTERFACE -Werror)
endif()
if(MC_SANITIZE)
  target_compile_options(mc_options INTERFACE -fsanitize=${MC_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(mc_options INTERFACE -fsanitize=${MC_SANITIZE})
endif()

# mc_stand_alone(<target>): needs no shared library at run time but those of glibc, and shows no
# symbol of what it holds.  The two belong together: libmc_sandbox.so and others are loaded
# beside the libstdc++.so that PyTorch uses, and neither may take for its own what is the other's.
# With sanitizers it needs libstdc++.so, parts of which their run-time libraries replace.
function(mc_stand_alone target)
  set(hide ${PROJECT_SOURCE_DIR}/cmake/hide_cxx.map)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  if(NOT MC_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
      -Wl,--version-script=${hide})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${hide})
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/arc4random.cc)
  endif()
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# mc_static_library(<name> <header> <archive>): an imported static library of the system.
function(mc_static_library name header archive)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  find_library(${name}_ARCHIVE ${archive} REQUIRED)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${${name}_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
endfunction()

# mc_discover_tests(<target> [<pattern>]): its tests, with the label `quick` but for those whose
# names match the pattern of GoogleTest's.  All quick ones together take at most two minutes on two
# cores.
function(mc_discover_tests target long)
  if(long)
    gtest_discover_tests(${target} TEST_FILTER "${long}" TEST_LIST ${target}_long
      DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
    set(filter TEST_FILTER "-${long}")
  endif()
  gtest_discover_tests(${target} ${filter} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS quick TIMEOUT 300)
endfunction()

# layer(<name> [USES <layer>...] [HIDES <layer or library>...] [LONG <pattern>]): src/<name> as one
# library and one test program.  USES are the layers that its headers mention; HIDES stay inside its
# .cc files; LONG are tests that are not quick.
# *_test.cc hold tests, test_*.cc what long ones need, and testing/ what the tests of other layers
# use, too.  Each layer has an include root that shows it alone, so an undeclared include does not
# compile.
function(layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LONG" "USES;HIDES")
  set(dir ${PROJECT_SOURCE_DIR}/src/${name})
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${dir} ${root}/${name} SYMBOLIC)
  file(GLOB headers CONFIGURE_DEPENDS ${root}/${name}/*.h)
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${sources})
  set(fuzzers ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/test_[^/]*\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$|/test_[^/]*\\.cc$")

  add_library(${name} STATIC ${sources})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${headers})
  target_link_libraries(${name} PUBLIC ${arg_USES} PRIVATE ${arg_HIDES} mc_options)
  set(helpers)
  file(GLOB testing CONFIGURE_DEPENDS ${dir}/testing/*.cc)
  if(testing AND (MC_BUILD_TESTS OR MC_BUILD_FUZZ))
    add_library(${name}_testing STATIC ${testing})
    target_link_libraries(${name}_testing PUBLIC ${name} PRIVATE ${arg_HIDES} mc_options)
  endif()
  foreach(used ${name} ${arg_USES} ${arg_HIDES})
    if(TARGET ${used}_testing)
      list(APPEND helpers ${used}_testing)
    endif()
  endforeach()
  if(MC_BUILD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${name} ${helpers} ${arg_HIDES} mc_options
      GTest::gmock_main)
    target_compile_definitions(${name}_test PRIVATE MC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    mc_discover_tests(${name}_test "${arg_LONG}")
  endif()
  if(MC_BUILD_BENCH AND benches)
    find_package(benchmark REQUIRED)
    add_executable(${name}_bench ${benches})
    target_link_libraries(${name}_bench PRIVATE ${name} ${arg_HIDES} mc_options
      benchmark::benchmark_main)
  endif()
  if(MC_BUILD_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${target} PRIVATE ${name} ${helpers} ${arg_HIDES} mc_options)
    endforeach()
  endif()
endfunction()

# mc_embed(<layer> <file> <header> <symbol>): the text of the file as the layer's string <symbol>,
# which the header declares.
function(mc_embed layer file header symbol)
  set(path ${PROJECT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  get_filename_component(name ${file} NAME_WE)
  set(source ${PROJECT_BINARY_DIR}/generated/${layer}/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"
const char* const ${symbol} = R\"text(@text@)text\";\n" @ONLY)
  target_sources(${layer} PRIVATE ${source})
endfunction()
