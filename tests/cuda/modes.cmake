# The ways of running kernels on the CPU, and how C++ is compiled for them. These commands do not go through
# CMake's own C++, because each mode has a compiler of its own and hearth has no C++.
find_program(HEARTH_GXX NAMES g++-12 g++)
find_program(HEARTH_CLANGXX NAMES clang++-14 clang++)

set(HEARTH_CUDA_MODES plain asan race msan CACHE STRING "Ways in which the GPU's kernels are tested on the CPU")
set(test_gpu_modes)
if(CMAKE_CROSSCOMPILING)
  set(HEARTH_GXX) # fibers under qemu would take hours
elseif(HEARTH_GXX)
  list(APPEND test_gpu_modes plain)
  if(NOT HEARTH_SANITIZE AND NOT HEARTH_FUZZ) # a program has one sanitizer
    list(APPEND test_gpu_modes asan race)
    execute_process(COMMAND ${HEARTH_GXX} -print-file-name=libasan.so
      OUTPUT_VARIABLE asan_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
else()
  message(NOTICE "No g++: the kernels are not tested on the CPU.")
endif()
if(HEARTH_CLANGXX AND asan_runtime)
  execute_process(COMMAND ${HEARTH_CLANGXX} -print-file-name=libclang_rt.msan-${CMAKE_SYSTEM_PROCESSOR}.a
    OUTPUT_VARIABLE msan_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(EXISTS "${msan_runtime}")
    list(APPEND test_gpu_modes msan)
  endif()
endif()
if(NOT msan_runtime AND NOT CMAKE_CROSSCOMPILING AND "msan" IN_LIST HEARTH_CUDA_MODES)
  message(NOTICE "No clang++ with MemorySanitizer: the kernels are not tested for unwritten memory.")
endif()
foreach(mode ${test_gpu_modes})
  if(NOT mode IN_LIST HEARTH_CUDA_MODES)
    list(REMOVE_ITEM test_gpu_modes ${mode})
  endif()
endforeach()

set(test_gpu_cxx_plain ${HEARTH_GXX})
set(test_gpu_flags_plain -O2 -march=native)
set(test_gpu_link_plain -Wl,-z,defs) # all symbols are there; not so for MSan's, which are in the program

# -fsanitize-sections: red zones between __shared__ variables too.
set(test_gpu_cxx_asan ${HEARTH_GXX})
set(test_gpu_flags_asan -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
  -fsanitize-sections=shared_memory -fno-omit-frame-pointer)
set(test_gpu_link_asan -fsanitize=address,undefined -Wl,-z,defs)

set(test_gpu_cxx_msan ${HEARTH_CLANGXX})
set(test_gpu_flags_msan -O1 -fsanitize=memory -fno-omit-frame-pointer
  -fsanitize-ignorelist=${CMAKE_CURRENT_SOURCE_DIR}/msan_ignore.txt)
set(test_gpu_link_msan -fsanitize=memory)

# Only kernels are instrumented, and host/race.cpp takes the place of the sanitizer's library.
set(test_gpu_cxx_race ${HEARTH_GXX})
set(test_gpu_flags_race -O1 -DTEST_RACE=1)
set(test_gpu_link_race -Wl,-z,defs)
set(test_gpu_kernel_flags_race -fsanitize=thread --param=tsan-instrument-func-entry-exit=0)

set(test_gpu_environment_plain
  LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_SOURCE_DIR}/leaks.txt:print_suppressions=0)
set(test_gpu_environment_asan ASAN_OPTIONS=detect_leaks=0)
# Programs are not compiled for MemorySanitizer, so what they allocate counts as initialised.
set(test_gpu_environment_msan MSAN_OPTIONS=poison_in_malloc=0:poison_in_free=0)

if(CMAKE_COMPILE_WARNING_AS_ERROR)
  set(test_gpu_werror -Werror)
endif()
set(test_gpu_flags ${test_gpu_werror} -std=c++17 -g -fPIC -fvisibility=hidden -Wall -Wextra -Wshadow -D_GNU_SOURCE
  -I${CMAKE_CURRENT_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/src -isystem ${HEARTH_CUDA_INCLUDE})
# Contraction would round otherwise than the device, where nvcc decides what becomes an fma.
set(test_gpu_kernel_flags -x c++ -ffp-contract=off -Wno-unknown-pragmas)

# Compiles sources (.cpp, or .cu as kernels) for a mode; sets the variable `result` to their objects.
function(test_gpu_compile result mode)
  set(objects)
  foreach(source ${ARGN})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${mode}/${name}.o)
    get_filename_component(folder ${object} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    set(flags ${test_gpu_flags} ${test_gpu_flags_${mode}})
    if(source MATCHES "\\.cu$")
      list(APPEND flags ${test_gpu_kernel_flags} ${test_gpu_kernel_flags_${mode}})
    endif()
    add_custom_command(OUTPUT ${object}
      COMMAND ${test_gpu_cxx_${mode}} ${flags} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "Compiling ${name} (${mode})")
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

# Gives a C program what a mode's library needs in the program itself.
function(test_gpu_link_runtime target mode)
  if(mode STREQUAL asan)
    target_link_options(${target} PRIVATE -Wl,--no-as-needed ${asan_runtime} -Wl,--as-needed)
  elseif(mode STREQUAL msan)
    target_link_options(${target} PRIVATE -Wl,--whole-archive ${msan_runtime} -Wl,--no-whole-archive
      -Wl,--export-dynamic)
    target_link_libraries(${target} PRIVATE pthread rt dl m)
  endif()
endfunction()

# A test that runs a program in a mode, with further variables of the environment. It finds a GPU, so there is no
# reason to skip it.
function(test_gpu_test name mode target)
  add_test(NAME cuda/${name} COMMAND ${target})
  set_tests_properties(cuda/${name} PROPERTIES
    ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/${mode};${test_gpu_environment_${mode}};${ARGN}")
  if(NOT mode STREQUAL plain)
    set_tests_properties(cuda/${name} PROPERTIES LABELS thorough)
  endif()
endfunction()

# Modes but the plain one are built when they are asked for: by the target test_thorough.
add_custom_target(test_thorough)
function(test_gpu_built_for mode)
  if(mode STREQUAL plain)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL OFF)
  else()
    add_dependencies(test_thorough ${ARGN})
  endif()
endfunction()

# Links the objects of the library test_cuda_NAME, and others, as one program for each mode, and runs them; in
# plain mode also with other orders of threads and moments of asynchronous copies, which kernels that are right
# do not notice.
function(test_gpu_programs name)
  foreach(mode ${test_gpu_modes})
    set(target test_cuda_${name}_${mode})
    add_executable(${target} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:test_cuda_${name}> ${ARGN})
    test_gpu_built_for(${mode} ${target})
    target_link_libraries(${target} PRIVATE cuda cpu test_support)
    test_gpu_link_runtime(${target} ${mode})
    add_dependencies(${target} testgpu_${mode})
    test_gpu_test(${name}_${mode} ${mode} ${target})
  endforeach()
  if(NOT plain IN_LIST test_gpu_modes)
    return()
  endif()
  test_gpu_test(${name}_reverse plain test_cuda_${name}_plain TEST_GPU_ORDER=reverse TEST_GPU_ASYNC=eager)
  foreach(seed 1 2)
    test_gpu_test(${name}_random_${seed} plain test_cuda_${name}_plain
      TEST_GPU_ORDER=random TEST_GPU_SEED=${seed})
    set_tests_properties(cuda/${name}_random_${seed} PROPERTIES LABELS thorough)
  endforeach()
endfunction()
