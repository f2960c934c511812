# The kernels, compiled once per instruction set and storage type; cpu/dispatch.c chooses at run time.
# Filled in by the cpu room.
add_library(kernels INTERFACE)
