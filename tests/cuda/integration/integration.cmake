# Whole runs of hearth on the test GPU, and tests of training that the CPU passes too.
if(NOT plain IN_LIST test_gpu_modes)
  return()
endif()
file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/integration/test_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  string(REPLACE test_ "" name ${name})
  add_test(NAME cuda/${name} COMMAND bash ${script} $<TARGET_FILE:hearth>)
  set_tests_properties(cuda/${name} PROPERTIES
    ENVIRONMENT LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/plain LABELS "program;run")
endforeach()

add_test(NAME cuda/resume
  COMMAND bash ${CMAKE_SOURCE_DIR}/tests/integration/test_resume.sh $<TARGET_FILE:hearth>)
set_tests_properties(cuda/resume PROPERTIES
  ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/plain;STEPS=12;ROWS=4" LABELS "program;run")
foreach(name step golden)
  add_test(NAME cuda/train_${name} COMMAND test_train_${name})
  set_tests_properties(cuda/train_${name} PROPERTIES
    ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/plain;HEARTH_TEST_DEVICE=cuda;HEARTH_TEST_STEPS=4")
endforeach()
