/* safetensors: read with every rule of the format checked, written atomically.
 * Format: u64 little-endian header length; JSON header; packed data. */
#ifndef HEARTH_FILES_SAFETENSORS_H
#define HEARTH_FILES_SAFETENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

/* As the format names them. */
typedef enum TensorType {
    TENSOR_BOOL,
    TENSOR_U8,
    TENSOR_I8,
    TENSOR_F8_E5M2,
    TENSOR_F8_E4M3,
    TENSOR_I16,
    TENSOR_U16,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_I32,
    TENSOR_U32,
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_I64,
    TENSOR_U64,
    TENSOR_TYPES
} TensorType;

size_t tensor_type_size(TensorType type);
const char *tensor_type_name(TensorType type);

enum { TENSOR_RANK_MAX = 8 };

typedef struct Tensor Tensor;
struct Tensor {
    char *name;
    TensorType type;
    int rank;
    int64_t shape[TENSOR_RANK_MAX];
    const void *data; /* read: in the mapping, at any alignment; written: the caller's */
    size_t bytes;
    /* Written instead of `data` where there is none: copies `bytes` bytes from `offset` on. */
    bool (*read)(const Tensor *tensor, size_t offset, void *out, size_t bytes, Error *error);
    const void *source; /* read()'s own */
};

typedef struct Safetensors {
    Tensor *tensors; /* in the order of their data */
    int count;
    FileMap map;
} Safetensors;

bool safetensors_open(Safetensors *file, const char *path, Error *error);
void safetensors_close(Safetensors *file);
/* NULL when there is none of that name. */
const Tensor *safetensors_find(const Safetensors *file, const char *name);

/* Writes the tensors in the order given, with `metadata` pairs (key, value, …, NULL), the header
 * padded so that data starts at a multiple of 8. sha256 may be NULL. */
bool safetensors_write(const char *path, const Tensor *tensors, int count,
                       const char *const *metadata, char sha256[SHA256_TEXT], Error *error);

#endif
