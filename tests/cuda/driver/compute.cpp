/* The arithmetic of matrix products: operands are widened to fp32 and packed, then multiplied in blocks. */
#include <algorithm>
#include <cmath>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "host/runtime.h"
#include "matmul.h"

namespace driver {

typedef float Vector __attribute__((vector_size(64)));
constexpr int64_t lanes = 16, tile_m = 2 * lanes, tile_n = 6, block_m = 8 * tile_m, block_k = 512;

/* A matrix of a batch, seen as rows by columns of whatever type. */
struct View {
    cudaDataType_t type;
    const char *data;
    int64_t row_step, column_step; /* elements */
};

static View view(const Layout &layout, const void *pointer, int64_t batch, bool transposed) {
    bool by_rows = (layout.order == CUBLASLT_ORDER_ROW) != transposed;
    return {layout.type,
            static_cast<const char *>(pointer) + bytes_of(layout.type, batch * layout.stride),
            by_rows ? layout.leading : 1, by_rows ? 1 : layout.leading};
}

static float widen(float x) {
    return x;
}

static float widen(__nv_bfloat16 x) {
    uint16_t half;
    memcpy(&half, &x, sizeof half);
    uint32_t bits = uint32_t{half} << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float widen(__half x) {
    return __half2float(x);
}

template <class Fp8> static float widen_byte(Fp8 x) {
    static float table[256];
    static bool ready = false;
    if (!ready) {
        for (int i = 0; i < 256; i++) {
            Fp8 value;
            value.__x = static_cast<unsigned char>(i);
            table[i] = static_cast<float>(value);
        }
        ready = true;
    }
    return table[x.__x];
}

static float widen(__nv_fp8_e4m3 x) {
    return widen_byte(x);
}

static float widen(__nv_fp8_e5m2 x) {
    return widen_byte(x);
}

template <class T>
static void read_as(const char *data, int64_t first, int64_t step, int64_t count, float *out) {
    const T *elements = reinterpret_cast<const T *>(data) + first;
    if (step == 1) {
        host::check_initialised(elements, static_cast<size_t>(count) * sizeof(T));
    } else {
        for (int64_t i = 0; i < count; i++) host::check_initialised(elements + i * step, sizeof(T));
    }
    for (int64_t i = 0; i < count; i++) out[i] = widen(elements[i * step]);
}

/* Elements first, first + step, ... as floats. */
static void read(const View &view, int64_t first, int64_t step, int64_t count, float *out) {
    switch (view.type) {
    case CUDA_R_32F:
        return read_as<float>(view.data, first, step, count, out);
    case CUDA_R_16BF:
        return read_as<__nv_bfloat16>(view.data, first, step, count, out);
    case CUDA_R_16F:
        return read_as<__half>(view.data, first, step, count, out);
    case CUDA_R_8F_E4M3:
        return read_as<__nv_fp8_e4m3>(view.data, first, step, count, out);
    default:
        return read_as<__nv_fp8_e5m2>(view.data, first, step, count, out);
    }
}

/* packed[k][width] of `rows` x `depth` elements from (row, first_k), zeros beyond `rows`. */
static void pack(const View &view, int64_t row, int64_t rows, int64_t first_k, int64_t depth,
                 int64_t width, float *packed) {
    if (rows < width) memset(packed, 0, static_cast<size_t>(depth * width) * sizeof(float));
    if (view.row_step == 1) {
        for (int64_t k = 0; k < depth; k++) {
            read(view, row + (first_k + k) * view.column_step, 1, rows, packed + k * width);
        }
        return;
    }
    float line[block_k];
    for (int64_t i = 0; i < rows; i++) {
        read(view, (row + i) * view.row_step + first_k * view.column_step, view.column_step, depth,
             line);
        for (int64_t k = 0; k < depth; k++) packed[k * width + i] = line[k];
    }
}

/* sum[tile_n][tile_m] = a b over the depth. */
static void multiply_tile(const float *a, const float *b, int64_t depth, float *sum) {
    Vector total[tile_n][2] = {};
    for (int64_t k = 0; k < depth; k++) {
        Vector low, high;
        memcpy(&low, a + k * tile_m, sizeof low);
        memcpy(&high, a + k * tile_m + lanes, sizeof high);
#pragma GCC unroll 6 /* keeps the sums in registers at -O2 */
        for (int64_t j = 0; j < tile_n; j++) {
            total[j][0] += low * b[k * tile_n + j];
            total[j][1] += high * b[k * tile_n + j];
        }
    }
    memcpy(sum, total, sizeof total);
}

/* sums[n][m] += a[m, depth] b[depth, n] for a block of m's; a and b are packed. */
static void multiply_block(const float *a, const float *b, int64_t depth, int64_t first_m,
                           int64_t last_m, int64_t m, int64_t n, float *sums) {
    float tile[tile_n * tile_m];
    for (int64_t j = 0; j < n; j += tile_n) {
        for (int64_t i = first_m; i < last_m; i += tile_m) {
            multiply_tile(a + (i - first_m) * depth, b + j * depth, depth, tile);
            int64_t height = std::min(tile_m, last_m - i), width = std::min(tile_n, n - j);
            for (int64_t x = 0; x < width; x++) {
                float *column = sums + (j + x) * m + i;
                for (int64_t y = 0; y < height; y++) column[y] += tile[x * tile_m + y];
            }
        }
    }
}

static int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/* sums[n][m] = op(A) op(B) over k from `first` to `last`. */
static void multiply(const View &a, const View &b, int64_t m, int64_t n, int64_t first,
                     int64_t last, float *sums) {
    std::fill(sums, sums + m * n, 0.0f);
    std::vector<float> packed_a(static_cast<size_t>(block_m * block_k));
    std::vector<float> packed_b(static_cast<size_t>(round_up(n, tile_n) * block_k));
    for (int64_t k = first; k < last; k += block_k) {
        int64_t depth = std::min(block_k, last - k);
        for (int64_t j = 0; j < n; j += tile_n) {
            pack(b, j, std::min(tile_n, n - j), k, depth, tile_n, packed_b.data() + j * depth);
        }
        for (int64_t i = 0; i < m; i += block_m) {
            int64_t end = std::min(m, i + block_m);
            for (int64_t row = i; row < end; row += tile_m) {
                pack(a, row, std::min(tile_m, end - row), k, depth, tile_m,
                     packed_a.data() + (row - i) * depth);
            }
            multiply_block(packed_a.data(), packed_b.data(), depth, i, end, m, n, sums);
        }
    }
}

void partial_products(const Product &product, int parts, float *sums) {
    int64_t m = product.m(), n = product.n(), k = product.k();
    bool transpose_a = product.description.transpose_a != CUBLAS_OP_N;
    bool transpose_b = product.description.transpose_b != CUBLAS_OP_N;
    for (int part = 0; part < parts; part++) {
        for (int batch = 0; batch < product.d.batch; batch++, sums += m * n) {
            View a = view(product.a, product.pointer_a, batch, transpose_a);
            View b =
                view(product.b, product.pointer_b, batch, !transpose_b); /* rows are n, columns k */
            multiply(a, b, m, n, k * part / parts, k * (part + 1) / parts, sums);
        }
    }
}

template <class T>
static void write_as(char *data, int64_t first, int64_t step, int64_t count, const float *values) {
    T *elements = reinterpret_cast<T *>(data) + first;
    for (int64_t i = 0; i < count; i++) {
        elements[i * step] = T(values[i]);
        host::trust(elements + i * step, sizeof(T));
    }
}

static void write(const View &view, int64_t first, int64_t step, int64_t count,
                  const float *values) {
    char *data = const_cast<char *>(view.data);
    switch (view.type) {
    case CUDA_R_32F:
        return write_as<float>(data, first, step, count, values);
    case CUDA_R_16BF:
        return write_as<__nv_bfloat16>(data, first, step, count, values);
    case CUDA_R_16F:
        return write_as<__half>(data, first, step, count, values);
    case CUDA_R_8F_E4M3:
        return write_as<__nv_fp8_e4m3>(data, first, step, count, values);
    default:
        return write_as<__nv_fp8_e5m2>(data, first, step, count, values);
    }
}

/* The factor that scale pointers add to alpha. */
static float scale_of(const float *pointer) {
    if (!pointer) return 1;
    host::check_initialised(pointer, sizeof *pointer);
    return *pointer;
}

void combine_parts(const Product &product, int parts, int first, const float *sums) {
    int64_t m = product.m(), n = product.n();
    float alpha = product.alpha * scale_of(product.description.scale_a) *
                  scale_of(product.description.scale_b);
    std::vector<float> column(static_cast<size_t>(m)), before(static_cast<size_t>(m));
    for (int batch = 0; batch < product.d.batch; batch++) {
        View c = view(product.c, product.pointer_c, batch, false);
        View d = view(product.d, product.pointer_d, batch, false);
        for (int64_t j = 0; j < n; j++) {
            const float *sum = sums + batch * m * n + j * m;
            const float *start = sum + first * product.results();
            std::copy(start, start + m, column.begin());
            for (int i = 1; i < parts; i++) {
                const float *more = sum + (first + i) % parts * product.results();
                for (int64_t row = 0; row < m; row++) column[static_cast<size_t>(row)] += more[row];
            }
            for (float &value : column) value *= alpha;
            if (product.beta != 0) {
                read(c, j * c.column_step, c.row_step, m, before.data());
                for (size_t i = 0; i < column.size(); i++) column[i] += product.beta * before[i];
            }
            write(d, j * d.column_step, d.row_step, m, column.data());
        }
    }
}

} // namespace driver
