/* cuBLASLt: descriptors, the heuristic and the product. */
#include <algorithm>
#include <cstring>
#include <memory>

#include "chips.h"
#include "host/runtime.h"
#include "matmul.h"
#include "streams.h"

struct cublasLtContext {
    int unused;
};

namespace driver {

struct Preference {
    uint64_t workspace = 0;
    uint32_t alignments[4] = {256, 256, 256, 256};
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

static Handles<cublasLtContext> contexts("cuBLASLt handle");
static Handles<Description> descriptions("description of a product");
static Handles<Layout> layouts("layout of a matrix");
static Handles<Preference> preferences("preference");

static cublasStatus_t lt_ready() {
    return ready() ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

/* Copies an attribute whose size must be the documented one. */
template <class T> static cublasStatus_t set(T &place, const void *value, size_t bytes) {
    if (!value || bytes != sizeof(T)) return invalid("an attribute has another size");
    memcpy(&place, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static Product product_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                          cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                          cublasLtMatrixLayout_t d) {
    Product product;
    product.description = *descriptions.check(description);
    product.a = *layouts.check(a);
    product.b = *layouts.check(b);
    product.c = *layouts.check(c);
    product.d = *layouts.check(d);
    return product;
}

static void alignments_of(const Product &product, const uint64_t (&pointers)[4],
                          int64_t (&alignments)[4]) {
    const Layout *matrices[4] = {&product.a, &product.b, &product.c, &product.d};
    for (int i = 0; i < 4; i++) alignments[i] = alignment_of(*matrices[i], pointers[i]);
}

/* An algorithm as the program keeps it: this mark, then its number. */
constexpr uint64_t algorithm_mark = 0x7465737420677075;

static cublasLtMatmulAlgo_t encode(const Algorithm &algorithm) {
    cublasLtMatmulAlgo_t encoded = {};
    encoded.data[0] = algorithm_mark;
    encoded.data[1] = static_cast<uint64_t>(algorithm.number);
    return encoded;
}

static cublasLtMatmulHeuristicResult_t result_of(const Algorithm &algorithm) {
    cublasLtMatmulHeuristicResult_t result = {};
    result.algo = encode(algorithm);
    result.workspaceSize = static_cast<size_t>(algorithm.workspace);
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
    return result;
}

/* The algorithm that the program chose, or the first that needs no more workspace than there is. */
static cublasStatus_t find_algorithm(const Product &product, const int64_t (&alignments)[4],
                                     const cublasLtMatmulAlgo_t *chosen, size_t workspace,
                                     Algorithm &found) {
    if (chosen && chosen->data[0] != algorithm_mark)
        die("the algorithm is not one of the heuristic's");
    for (const Algorithm &algorithm : algorithms_for(product, alignments)) {
        bool fits = algorithm.workspace <= static_cast<int64_t>(workspace);
        if (chosen ? chosen->data[1] != static_cast<uint64_t>(algorithm.number) : !fits) continue;
        if (!fits) return invalid("the workspace is smaller than the algorithm needs");
        found = algorithm;
        return CUBLAS_STATUS_SUCCESS;
    }
    complain("the algorithm cannot do a product of this shape with pointers and leading dimensions "
             "of %lld, %lld, "
             "%lld and %lld bytes",
             static_cast<long long>(alignments[0]), static_cast<long long>(alignments[1]),
             static_cast<long long>(alignments[2]), static_cast<long long>(alignments[3]));
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t status_of(CUresult result) {
    return result ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

/* One piece of work; or two when parts are added up in the workspace, between which other streams may run. */
static cublasStatus_t queue(const Product &product, const Algorithm &algorithm, void *workspace,
                            const Uses &uses, CUstream stream) {
    int parts = algorithm.parts;
    if (parts == 1) {
        return status_of(submit(stream, {"matmul", algorithm.nanoseconds, uses, [=] {
                                             std::vector<float> sums(
                                                 static_cast<size_t>(product.results()));
                                             partial_products(product, 1, sums.data());
                                             combine_parts(product, 1, 0, sums.data());
                                         }}));
    }
    float *sums = static_cast<float *>(workspace);
    double half = algorithm.nanoseconds / 2;
    bool ordered = algorithm.reduction != CUBLASLT_REDUCTION_SCHEME_INPLACE;
    TRY(status_of(submit(
        stream, {"matmul parts", half, uses, [=] { partial_products(product, parts, sums); }})));
    return status_of(submit(stream, {"matmul sums", half, uses, [=] {
                                         size_t count = static_cast<size_t>(parts);
                                         int first =
                                             ordered ? 0 : static_cast<int>(random_below(count));
                                         combine_parts(product, parts, first, sums);
                                     }}));
}

} // namespace driver

using namespace driver;

API size_t cublasLtGetVersion() {
    return CUBLAS_VERSION;
}

API const char *cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "invalid value";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "not supported";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "execution failed";
    default:
        return "another failure";
    }
}

API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    Call call(__func__);
    TRY(lt_ready());
    *handle = contexts.create();
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    Call call(__func__);
    contexts.destroy(contexts.check(handle));
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description,
                                            cublasComputeType_t compute,
                                            cudaDataType_t scale_type) {
    Call call(__func__);
    Description *created = descriptions.create();
    created->compute = compute;
    created->scale_type = scale_type;
    *description = reinterpret_cast<cublasLtMatmulDesc_t>(created);
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
    Call call(__func__);
    descriptions.destroy(descriptions.check(description));
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                  cublasLtMatmulDescAttributes_t attribute,
                                                  const void *value, size_t bytes) {
    Call call(__func__);
    Description &description = *descriptions.check(handle);
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(description.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(description.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(description.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return set(description.pointer_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return set(description.scale_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return set(description.scale_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
        return set(description.scale_mode_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        return set(description.scale_mode_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return set(description.fast_accumulation, value, bytes);
    default:
        return invalid("this attribute of a product is not modelled");
    }
}

API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                              uint64_t rows, uint64_t columns, int64_t leading) {
    Call call(__func__);
    Layout *created = layouts.create();
    created->type = type;
    created->rows = rows;
    created->columns = columns;
    created->leading = leading;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(created);
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    Call call(__func__);
    layouts.destroy(layouts.check(layout));
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                    cublasLtMatrixLayoutAttribute_t attribute,
                                                    const void *value, size_t bytes) {
    Call call(__func__);
    Layout &layout = *layouts.check(handle);
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
        return set(layout.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
        return set(layout.rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
        return set(layout.columns, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
        return set(layout.leading, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(layout.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(layout.stride, value, bytes);
    default:
        return invalid("this attribute of a layout is not modelled");
    }
}

API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    Call call(__func__);
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(preferences.create());
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    Call call(__func__);
    preferences.destroy(preferences.check(preference));
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *value, size_t bytes) {
    Call call(__func__);
    Preference &preference = *preferences.check(handle);
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(preference.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set(preference.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set(preference.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set(preference.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(preference.alignments[3], value, bytes);
    default:
        return invalid("this preference is not modelled");
    }
}

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference_handle, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int *count) {
    Call call(__func__);
    contexts.check(handle);
    Product product = product_of(description, a, b, c, d);
    const Preference &preference = *preferences.check(preference_handle);
    *count = 0;
    if (wanted < 1) return invalid("no algorithm wanted");
    TRY(check_product(product));
    uint64_t pointers[4];
    std::copy(preference.alignments, preference.alignments + 4, pointers);
    int64_t alignments[4];
    alignments_of(product, pointers, alignments);
    for (const Algorithm &algorithm : algorithms_for(product, alignments)) {
        if (static_cast<uint64_t>(algorithm.workspace) > preference.workspace || *count == wanted ||
            (algorithm.reduction & ~preference.reductions))
            continue;
        results[(*count)++] = result_of(algorithm);
    }
    return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                  const void *alpha, const void *pointer_a,
                                  cublasLtMatrixLayout_t a, const void *pointer_b,
                                  cublasLtMatrixLayout_t b, const void *beta, const void *pointer_c,
                                  cublasLtMatrixLayout_t c, void *pointer_d,
                                  cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *chosen,
                                  void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    Call call(__func__);
    TRY(lt_ready());
    contexts.check(handle);
    Product product = product_of(description, a, b, c, d);
    TRY(check_product(product));
    product.alpha = *static_cast<const float *>(alpha);
    product.beta = *static_cast<const float *>(beta);
    product.pointer_a = pointer_a;
    product.pointer_b = pointer_b;
    product.pointer_c = pointer_c;
    product.pointer_d = pointer_d;
    Uses uses;
    TRY(check_operands(product, uses));
    TRY(check_workspace(workspace, workspace_bytes, uses));
    uint64_t c_or_d = reinterpret_cast<uint64_t>(product.beta != 0 ? pointer_c : pointer_d);
    int64_t alignments[4];
    alignments_of(product,
                  {reinterpret_cast<uint64_t>(pointer_a), reinterpret_cast<uint64_t>(pointer_b),
                   c_or_d, reinterpret_cast<uint64_t>(pointer_d)},
                  alignments);
    Algorithm algorithm;
    TRY(find_algorithm(product, alignments, chosen, workspace_bytes, algorithm));
    if (fault_of("matmul", algorithm.number)) {
        complain("algorithm %d fails, as TEST_GPU_FAULT asks", algorithm.number);
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return queue(product, algorithm, workspace, uses, stream);
}
