/* Any bytes as a safetensors file: refused, or every byte of every tensor can be read. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int memory = -1;
    static char path[64];
    if (memory < 0) {
        memory = memfd_create("input", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    }
    if (ftruncate(memory, 0) != 0 || pwrite(memory, data, size, 0) != (ssize_t)size) return 0;
    Safetensors file;
    Error error;
    if (!safetensors_open(&file, path, &error)) return 0;
    for (int i = 0; i < file.count; i++)
        for (size_t j = 0; j < file.tensors[i].bytes; j++)
            sink += ((const uint8_t *)file.tensors[i].data)[j];
    safetensors_close(&file);
    return 0;
}
