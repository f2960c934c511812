/* What attention needs beside its operands. */
#include "cuda/attention_backward.h"
#include "cuda/workspace.h"

enum { LARGEST_D = 128, CHUNK = 8 /* elements that kernels read at once */ };

int64_t cuda_attention_workspace(const Program *program, const Operation *operation, Error *error) {
    const AttentionShape *shape = &operation->attention;
    if (shape->D > LARGEST_D || shape->D % CHUNK != 0) {
        fail(error,
             "the GPU's attention has no kernel for a head dimension of %lld, only for multiples "
             "of %d up to %d: change the number of heads, or use --device cpu",
             (long long)shape->D, CHUNK, LARGEST_D);
        return -1;
    }
    if (operation->kind != OP_ATTENTION_BACKWARD || program->storage != DTYPE_BF16) return 0;
    return shape->B * shape->H * BACKWARD_ALIGNED(shape->T) * BACKWARD_STATISTICS;
}
