# SPDX-License-Identifier: Apache-2.0
# Each library and program is one unit where run.sh builds it (CMAKE_UNITY_BUILD), so that
# the code that templates of JSON and GoogleTest need is compiled once and not for every file.
# Names in anonymous namespaces are therefore unique in a layer, and in its tests.  A file whose
# names are not is compiled alone: mc_alone(<folder> <file>...).
function(mc_alone folder)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  foreach(file ${ARGN})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "cmake/unity.cmake: there is no ${file}")
    endif()
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
if(CMAKE_UNITY_BUILD)  # No class of a .cc file is in two units, though it has no main file there.
  target_compile_options(mc_options INTERFACE -Wno-subobject-linkage)
endif()

# The object file of a library is left out where the program defines the same function
# (device/ptx_driver/check_failed.cc).
mc_alone(src/core check.cc)
mc_alone(src/compile musa_runtime.cc artifact_store.cc cuda_toolchain.cc cuda_libraries.cc
  diagnostics.cc artifact_store_test.cc cuda_toolchain_test.cc)
mc_alone(src/eval cpu_backend.cc cuda_backend.cc cuda_facts.cc musa_branches.cc
  musa_dead_python.cc cuda_facts_test.cc)
mc_alone(src/execute decode.cc measurement.cc cuda_driver.cc measurement_device_test.cc)
mc_alone(src/forge batch.cc code.cc interpret.cc operators.cc chunk.cc kernels.cc mutate.cc
  sizes.cc reason.cc operator_mutation.cc operator_mutation_test.cc words_test.cc)
mc_alone(src/legality flags.cc kernels.cc static_rules.cc flags_test.cc extract_test.cc
  policy_test.cc symbols_test.cc)
mc_alone(src/loop rl.cc judge.cc rl_settings.cc)
mc_alone(src/model config.cc ops.cc model_folder.cc safetensors.cc gpu_generate.cc decoder_test.cc)
mc_alone(src/musify python_words.cc python_flow.cc definitions.cc message.cc)
mc_alone(src/report bench.cc bench_test.cc)
mc_alone(src/rl golden_test.cc mirror_pop_test.cc ablation_test.cc objective_test.cc)
mc_alone(src/sandbox profile.cc child.cc enter.cc)
mc_alone(src/service request.cc)
mc_alone(src/train gloo.cc metrics.cc)
mc_alone(src/worker envelope.cc session_test.cc warm_pool_test.cc)
