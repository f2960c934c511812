# The kernels: every kernels/*.c is compiled once for each instruction set and storage type, with its
# names suffixed (vector.h: KERNEL). dispatch.c chooses an instance at run time, so nothing compiled
# here may be visible outside its instance except its table: helpers are static.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(kernel_isas portable avx2 avx512 avx512bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(kernel_isas neon)
else()
  set(kernel_isas portable)
endif()
set(kernel_flags_avx2 -mavx2 -mfma)
set(kernel_flags_avx512 ${kernel_flags_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq
  -mprefer-vector-width=512)
set(kernel_flags_avx512bf16 ${kernel_flags_avx512} -mavx512bf16)

file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cpu/kernels/*.c)
# Optimizer states have the same bits in every instance and on the GPU, so they forgo fused multiply-add.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cpu/kernels/adamw.c
  ${CMAKE_SOURCE_DIR}/src/cpu/kernels/muon_begin.c
  PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
set(kernel_objects)
foreach(isa ${kernel_isas})
  foreach(storage fp32 bf16)
    set(instance kernels_${isa}_${storage})
    add_library(${instance} OBJECT ${kernel_sources})
    target_compile_options(${instance} PRIVATE -O3 -ffp-contract=fast ${kernel_flags_${isa}})
    target_compile_definitions(${instance} PRIVATE
      KERNEL_ISA=${isa} KERNEL_STORAGE=${storage} KERNEL_BF16=$<STREQUAL:${storage},bf16>)
    target_link_libraries(${instance} PRIVATE OpenMP::OpenMP_C)
    list(APPEND kernel_objects $<TARGET_OBJECTS:${instance}>)
  endforeach()
endforeach()

add_library(kernels STATIC ${kernel_objects})
set_target_properties(kernels PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(kernels PUBLIC numeric base)
