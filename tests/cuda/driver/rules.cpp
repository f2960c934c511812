/* Which products cuBLASLt has on which chip (its documentation, "Supported types"), and matrices' alignment. */
#include <cstdint>

#include "chips.h"
#include "driver.h"
#include "matmul.h"

namespace driver {

int bits_of(cudaDataType_t type) {
    switch (type) {
    case CUDA_R_32F:
        return 32;
    case CUDA_R_16BF:
    case CUDA_R_16F:
        return 16;
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
        return 8;
    default:
        return 0;
    }
}

int64_t Layout::extent() const {
    int64_t lines = static_cast<int64_t>(order == CUBLASLT_ORDER_ROW ? rows : columns);
    int64_t line = static_cast<int64_t>(order == CUBLASLT_ORDER_ROW ? columns : rows);
    return (batch - 1) * stride + (lines - 1) * leading + line;
}

bool Layout::operator==(const Layout &other) const {
    return type == other.type && rows == other.rows && columns == other.columns &&
           leading == other.leading && order == other.order && batch == other.batch &&
           stride == other.stride;
}

static int64_t side(const Layout &layout, bool first) {
    return static_cast<int64_t>(first ? layout.rows : layout.columns);
}

int64_t Product::m() const {
    return side(a, description.transpose_a == CUBLAS_OP_N);
}

int64_t Product::k() const {
    return side(a, description.transpose_a != CUBLAS_OP_N);
}

int64_t Product::n() const {
    return side(b, description.transpose_b != CUBLAS_OP_N);
}

int64_t Product::results() const {
    return m() * n() * d.batch;
}

static cublasStatus_t refuse_product(cublasStatus_t status, const char *why) {
    complain("%s", why);
    return status;
}

static cublasStatus_t check_layout(const Layout &layout) {
    if (!layout.rows || !layout.columns)
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE, "an empty matrix");
    if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "this order of elements is not modelled");
    }
    uint64_t line = layout.order == CUBLASLT_ORDER_ROW ? layout.columns : layout.rows;
    if (layout.leading < static_cast<int64_t>(line)) {
        complain("leading dimension %lld of a matrix of %llu rows and %llu columns",
                 static_cast<long long>(layout.leading),
                 static_cast<unsigned long long>(layout.rows),
                 static_cast<unsigned long long>(layout.columns));
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (layout.batch < 1) return refuse_product(CUBLAS_STATUS_INVALID_VALUE, "a batch of none");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_shapes(const Product &product) {
    for (const Layout *layout : {&product.a, &product.b, &product.c, &product.d})
        TRY(check_layout(*layout));
    int64_t depth = side(product.b, product.description.transpose_b == CUBLAS_OP_N);
    if (depth != product.k()) {
        complain("op(A) is %lld x %lld, op(B) is %lld x %lld", static_cast<long long>(product.m()),
                 static_cast<long long>(product.k()), static_cast<long long>(depth),
                 static_cast<long long>(product.n()));
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (const Layout *layout : {&product.c, &product.d}) {
        if (side(*layout, true) == product.m() && side(*layout, false) == product.n()) continue;
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE,
                              "C or D has another shape than op(A) op(B)");
    }
    if (product.a.batch != product.d.batch || product.b.batch != product.d.batch ||
        product.c.batch != product.d.batch) {
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE,
                              "matrices have batches of different sizes");
    }
    if (product.d.batch > 1 &&
        product.d.stride < product.d.extent() - (product.d.batch - 1) * product.d.stride) {
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE, "the results of a batch overlap");
    }
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_fp8(cudaDataType_t type) {
    return bits_of(type) == 8;
}

static int capability() {
    return 10 * chip().major + chip().minor;
}

/* Operands of 8 bits: from 8.9, A transposed and B not except on 10.0, everything a multiple of 16 bytes. */
static cublasStatus_t check_fp8(const Product &product) {
    const Description &description = product.description;
    if (capability() < 89)
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED, "this chip has no FP8");
    bool both_wide = product.a.type == CUDA_R_8F_E5M2 && product.b.type == CUDA_R_8F_E5M2;
    if (!is_fp8(product.a.type) || !is_fp8(product.b.type) || both_wide) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "FP8 with another type, or E5M2 with E5M2");
    }
    bool is_tn = description.transpose_a != CUBLAS_OP_N && description.transpose_b == CUBLAS_OP_N;
    if (chip().major != 10 && !is_tn) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "FP8 needs A transposed and B not on this chip");
    }
    if (description.compute != CUBLAS_COMPUTE_32F) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED, "FP8 needs CUBLAS_COMPUTE_32F");
    }
    for (const Layout *layout : {&product.a, &product.b, &product.c, &product.d}) {
        int64_t bytes = bytes_of(layout->type, layout->leading);
        int64_t line = bytes_of(layout->type, static_cast<int64_t>(layout->rows));
        if (bytes % 16 || line % 16) {
            return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                                  "FP8 needs columns of a multiple of 16 bytes");
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Scales of blocks come with 10.0, of rows and columns and of 128 elements they are 9.0's alone. */
static cublasStatus_t check_scale_mode(int32_t mode) {
    bool exists = true;
    switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F:
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3:
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
        exists = capability() >= 100;
        break;
    case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F:
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
        exists = capability() == 90;
        break;
    default:
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE, "there is no such scale mode");
    }
    return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED, exists ? "this scale mode is not modelled"
                                                              : "this chip has no such scale mode");
}

static cublasStatus_t check_types(const Product &product) {
    const Description &description = product.description;
    for (const Layout *layout : {&product.a, &product.b, &product.c, &product.d}) {
        if (!bits_of(layout->type))
            return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED, "a type is not modelled");
    }
    if (description.scale_type != CUDA_R_32F || description.epilogue != CUBLASLT_EPILOGUE_DEFAULT ||
        description.pointer_mode != CUBLASLT_POINTER_MODE_HOST) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "scale type, epilogue or pointer mode is not modelled");
    }
    bool fast = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                description.compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    if (description.compute != CUBLAS_COMPUTE_32F && !(fast && product.a.type == CUDA_R_32F)) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "compute type for operands of this type");
    }
    TRY(check_scale_mode(description.scale_mode_a));
    TRY(check_scale_mode(description.scale_mode_b));
    if (is_fp8(product.a.type) || is_fp8(product.b.type)) return check_fp8(product);
    if (description.scale_a || description.scale_b) {
        return refuse_product(CUBLAS_STATUS_INVALID_VALUE, "scales are for FP8 operands");
    }
    if (product.a.type != product.b.type) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED, "A and B have different types");
    }
    bool result_fits = product.d.type == product.a.type || product.d.type == CUDA_R_32F;
    if (product.c.type != product.d.type || !result_fits) {
        return refuse_product(CUBLAS_STATUS_NOT_SUPPORTED,
                              "no product of these types gives C and D of theirs");
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_product(const Product &product) {
    TRY(check_shapes(product));
    return check_types(product);
}

int64_t alignment_of(const Layout &layout, uint64_t pointer) {
    uint64_t places = pointer | static_cast<uint64_t>(bytes_of(layout.type, layout.leading)) | 256;
    if (layout.batch > 1) places |= static_cast<uint64_t>(bytes_of(layout.type, layout.stride));
    return static_cast<int64_t>(places & ~(places - 1));
}

} // namespace driver
