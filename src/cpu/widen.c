#include "cpu/widen.h"

void widen(float *out, const bf16 *in, int64_t n) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; i++) out[i] = bf16_to_float(in[i]);
}

void narrow(bf16 *out, const float *in, int64_t n) {
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; i++) out[i] = bf16_from_float(in[i]);
}
