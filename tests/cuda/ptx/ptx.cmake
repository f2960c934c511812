# The kernels' PTX as nvcc makes it, for the interpreter and for the checks of what compilers make of kernels.
# A test makes it, because a build of hearth for one chip needs none of it.
if(HEARTH_KERNEL_IMAGES)
  return() # of another build, which is where they are tested
endif()

# ptx/sm_XX/NAME.ptx, a folder for each chip whose code differs, is where TEST_GPU_PTX points.
set(ptx_chips 80 90 120f)
set(ptx_poses_as_80 a100)
set(ptx_poses_as_90 h100)
set(ptx_poses_as_120f rtx-5090)
set(ptx_files)
foreach(chip ${ptx_chips})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptx/sm_${chip})
  foreach(name ${cuda_names})
    add_custom_command(OUTPUT ${folder}/${name}.ptx
      COMMAND ${CMAKE_COMMAND} -E copy ${cuda_images}/${name}.sm_${chip}.ptx ${folder}/${name}.ptx
      DEPENDS ${cuda_images}/${name}.sm_${chip}.ptx VERBATIM)
    list(APPEND ptx_files ${folder}/${name}.ptx)
  endforeach()
  cuda_compile(${folder}/wrappers.ptx ${wrappers} -arch=compute_${chip} -ptx)
  list(APPEND ptx_files ${folder}/wrappers.ptx)
endforeach()
add_custom_target(cuda_ptx DEPENDS ${ptx_files})

# Cubins and the reports of ptxas, for every chip that hearth supports.
set(chip_files)
foreach(chip ${cuda_all_chips})
  foreach(name ${cuda_names})
    if(NOT chip IN_LIST HEARTH_CUDA_CHIPS)
      if(NOT chip STREQUAL cuda_ptx_for_later)
        cuda_ptx(${name} ${chip})
      endif()
      cuda_cubin(${name} ${chip})
    endif()
    list(APPEND chip_files ${cuda_images}/${name}.sm_${chip}.cubin)
  endforeach()
endforeach()
add_custom_target(cuda_chips DEPENDS ${chip_files})

add_test(NAME cuda/compile COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target cuda_ptx cuda_chips)
set_tests_properties(cuda/compile PROPERTIES FIXTURES_SETUP cuda_compiled RUN_SERIAL ON)

add_test(NAME cuda/gates
  COMMAND ${CMAKE_SOURCE_DIR}/scripts/check-kernels.sh ${cuda_images} ${CMAKE_BINARY_DIR}/kernels.md)
set_tests_properties(cuda/gates PROPERTIES FIXTURES_REQUIRED cuda_compiled)

# The tests of operations with interpreted kernels; that of the wrappers asks the chip what it has, for which
# its image needs code.
foreach(chip ${ptx_chips})
  set(interpreted TEST_GPU_PTX=${CMAKE_CURRENT_BINARY_DIR}/ptx/sm_${chip})
  set(tests)
  foreach(source ${operations})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE test_ "" name ${name})
    test_gpu_test(${name}_sm_${chip} plain test_cuda_${name}_plain ${interpreted})
    list(APPEND tests cuda/${name}_sm_${chip})
  endforeach()
  if(chip IN_LIST HEARTH_CUDA_CHIPS)
    test_gpu_test(wrappers_sm_${chip} plain test_cuda_wrappers_plain ${interpreted}
      TEST_GPU_CHIP=${ptx_poses_as_${chip}})
    list(APPEND tests cuda/wrappers_sm_${chip})
  endif()
  set_tests_properties(${tests} PROPERTIES FIXTURES_REQUIRED cuda_compiled)
endforeach()

# The interpreter's own test, with what it needs of the test GPU.
file(GLOB ptx_parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ptx/*.cpp)
file(GLOB ptx_test CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ptx/test/*.cpp)
foreach(mode plain asan)
  if(NOT mode IN_LIST test_gpu_modes)
    continue()
  endif()
  set(parts)
  foreach(source ${host} ${ptx_parts})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
    list(APPEND parts ${CMAKE_CURRENT_BINARY_DIR}/${mode}/${name}.o)
  endforeach()
  test_gpu_compile(objects ${mode} ${ptx_test})
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${mode}/test_ptx)
  add_custom_command(OUTPUT ${program}
    COMMAND ${HEARTH_GXX} ${test_gpu_link_${mode}} ${objects} ${parts} -lcmocka -pthread -o ${program}
    DEPENDS ${objects} ${parts} VERBATIM COMMENT "Linking test_ptx (${mode})")
  add_custom_target(test_ptx_${mode} DEPENDS ${program})
  test_gpu_built_for(${mode} test_ptx_${mode})
  test_gpu_test(ptx_${mode} ${mode} ${program})
endforeach()
