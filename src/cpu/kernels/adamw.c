/* AdamW (Loshchilov and Hutter, arXiv 1711.05101), with the bias correction of
 * torch.optim.AdamW. Bound by memory, so the gradient is set to zero where it is at hand instead of in
 * a pass of its own, and the working copy, not read before the next step, goes past the caches.
 *
 * Moments are widened to fp32 a block at a time, used at that precision for the update, and
 * only then rounded back to their format, as in arXiv 2110.02861: a second moment that rounds to
 * zero has not been divided by. This file is compiled without fused multiply-add, so that every
 * instance gives the same bits. */
#include "cpu/kernels/instance.h"
#include "cpu/kernels/row.h"
#include "cpu/kernels/words.h"

#include <math.h>

#include "numeric/power.h"

typedef struct Update {
    float gradient_scale, beta1, beta2, one_minus_beta1, one_minus_beta2;
    float decay, step_size, root_correction, epsilon;
    const StateCode *code1, *code2; /* of the first and second moment, 8-bit */
} Update;

static Update update_of(const AdamwArguments *a) {
    const double beta1 = (double)a->beta1, beta2 = (double)a->beta2;
    return (Update){
        .gradient_scale = a->gradient_scale,
        .beta1 = a->beta1,
        .beta2 = a->beta2,
        .one_minus_beta1 = (float)(1 - beta1),
        .one_minus_beta2 = (float)(1 - beta2),
        .decay = (float)(1 - (double)a->learning_rate * (double)a->weight_decay),
        .step_size = (float)((double)a->learning_rate / (1 - integer_power(beta1, a->step))),
        .root_correction = (float)(1 / sqrt(1 - integer_power(beta2, a->step))),
        .epsilon = a->epsilon,
        .code1 = state_code(true),
        .code2 = state_code(false),
    };
}

/* Elements start .. start + count of the parameters; m and v are their moments. */
static void update_block(const AdamwArguments *a, const Update *u, float *m, float *v,
                         int64_t start, int64_t count) {
    float *master = a->master + start, *gradient = a->gradient + start;
    Storage *working = a->working && a->working != a->master ? (Storage *)a->working + start : NULL;
    for (int64_t i = 0; i < count; i += W) {
        vfloat g = row_load_f32(gradient, i, count) * splat(u->gradient_scale);
        vfloat mean = row_load_f32(m, i, count) * splat(u->beta1) + g * splat(u->one_minus_beta1);
        vfloat square =
            row_load_f32(v, i, count) * splat(u->beta2) + g * g * splat(u->one_minus_beta2);
        vfloat root = vsqrt(square) * splat(u->root_correction) + splat(u->epsilon);
        vfloat p = row_load_f32(master, i, count) * splat(u->decay);
        p = p - mean * splat(u->step_size) / root;
        row_store_f32(gradient, i, count, splat(0));
        row_store_f32(m, i, count, mean);
        row_store_f32(v, i, count, square);
        row_store_f32(master, i, count, p);
        if (working) row_stream(working, i, count, p);
    }
}

static void update_block_bf16(const AdamwArguments *a, const Update *u, int64_t start,
                              int64_t count) {
    float m[STATE_BLOCK], v[STATE_BLOCK];
    uint32_t words[STATE_BLOCK];
    bf16 *moment1 = (bf16 *)a->moment1 + start, *moment2 = (bf16 *)a->moment2 + start;
    for (int64_t i = 0; i < count; i++) {
        m[i] = bf16_to_float(moment1[i]);
        v[i] = bf16_to_float(moment2[i]);
    }
    update_block(a, u, m, v, start, count);
    rounding_words(words, a->seed, a->tensor, a->step, start);
    for (int64_t i = 0; i < count; i++) { /* 16 bits for each moment */
        moment1[i] = bf16_stochastic(m[i], words[i]);
        moment2[i] = bf16_stochastic(v[i], words[i] << 16);
    }
}

static float largest_magnitude(const float *values, int64_t count) {
    vfloat largest = {0};
    for (int64_t i = 0; i < count; i += W)
        largest = vmax(vabs(row_load_f32(values, i, count)), largest);
    return vlargest(largest);
}

/* values = state_decode(codes) * absmax */
static void decode_block(float values[STATE_BLOCK], const uint8_t codes[STATE_BLOCK], float absmax,
                         const StateCode *code) {
    for (int i = 0; i < STATE_BLOCK; i += W) {
        vfloat n = __builtin_convertvector(vload_u8(codes + i) - code->bias, vfloat);
        vint bits = (vint)vmax(vabs(n), splat(0.5f)); /* so that 0 has a decade below that of 1 */
        vint decade = (bits >> 23) - 127 + code->halved;
        vfloat one_and_fraction = (vfloat)((bits & 0x007fffff) | 0x3f800000);
        vfloat value = (one_and_fraction + vpick(code->offset, decade)) * vpick(code->size, decade);
        value = (vfloat)((vint)value | ((vint)n & INT32_MIN));
        vstore_f32(values + i, value * splat(absmax));
    }
}

/* codes = state_encode(values / absmax) */
static void encode_block(uint8_t *restrict codes, const float values[STATE_BLOCK], float absmax,
                         const StateCode *code) {
    const vfloat least = splat(-0.99f); /* is coded as 0: no code means -1 */
    const float divisor = absmax > 0 ? absmax : 1;
    for (int i = 0; i < STATE_BLOCK; i += W) {
        vfloat x = vmax(least, vload_f32(values + i) / splat(divisor));
        vfloat magnitude = vmax(splat(STATE_LEAST), vabs(x));
        vint octaves = ((vint)magnitude >> 24) - 51, negative = x < splat(0);
        vint decade = __builtin_convertvector(vpick(code->decade, octaves), vint);
        decade -= magnitude > vpick(code->border, octaves);
        vfloat part = (magnitude - vpick(code->start, decade)) * vpick(code->scale, decade);
        part = vmin(part, vpick(code->last, decade));
        vfloat parts = (vfloat)((decade + (127 - code->halved)) << 23); /* 1/2 is cut to 0 */
        vint n = __builtin_convertvector(parts, vint) + __builtin_convertvector(part, vint);
        vstore_u8(codes + i, (n ^ negative) - negative + code->bias);
    }
}

static void update_coded(const AdamwArguments *a, const Update *u, uint8_t codes1[STATE_BLOCK],
                         uint8_t codes2[STATE_BLOCK], int64_t start, int64_t count) {
    float m[STATE_BLOCK], v[STATE_BLOCK];
    float *absmax1 = a->absmax1 + start / STATE_BLOCK, *absmax2 = a->absmax2 + start / STATE_BLOCK;
    decode_block(m, codes1, *absmax1, u->code1);
    decode_block(v, codes2, *absmax2, u->code2);
    update_block(a, u, m, v, start, count);
    *absmax1 = largest_magnitude(m, count);
    *absmax2 = largest_magnitude(v, count);
    encode_block(codes1, m, *absmax1, u->code1);
    encode_block(codes2, v, *absmax2, u->code2);
}

static void update_block_8bit(const AdamwArguments *a, const Update *u, int64_t start,
                              int64_t count) {
    uint8_t *moment1 = (uint8_t *)a->moment1 + start, *moment2 = (uint8_t *)a->moment2 + start;
    if (count == STATE_BLOCK) {
        update_coded(a, u, moment1, moment2, start, count);
        return;
    }
    uint8_t codes1[STATE_BLOCK] = {0}, codes2[STATE_BLOCK] = {0}; /* the last block, filled up */
    memcpy(codes1, moment1, (size_t)count);
    memcpy(codes2, moment2, (size_t)count);
    update_coded(a, u, codes1, codes2, start, count);
    memcpy(moment1, codes1, (size_t)count);
    memcpy(moment2, codes2, (size_t)count);
}

void KERNEL(adamw)(const AdamwArguments *a) {
    const Update update = update_of(a);
#pragma omp parallel for schedule(static)
    for (int64_t start = 0; start < a->n; start += STATE_BLOCK) {
        int64_t count = a->n - start < STATE_BLOCK ? a->n - start : STATE_BLOCK;
        if (a->format == STATE_BF16)
            update_block_bf16(a, &update, start, count);
        else if (a->format == STATE_8BIT)
            update_block_8bit(a, &update, start, count);
        else
            update_block(a, &update, (float *)a->moment1 + start, (float *)a->moment2 + start,
                         start, count);
    }
}
