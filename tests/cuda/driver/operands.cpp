/* The memory that a product is given: whether it is there, aligned, and not in each other's way. */
#include "driver.h"
#include "matmul.h"

namespace driver {

cublasStatus_t invalid(const char *why) {
    complain("%s", why);
    return CUBLAS_STATUS_INVALID_VALUE;
}

static bool use_matrix(Uses &uses, const char *name, const Layout &layout, const void *pointer) {
    uint64_t address = reinterpret_cast<uint64_t>(pointer);
    int64_t bytes = bytes_of(layout.type, layout.extent());
    if (address % static_cast<uint64_t>(bytes_of(layout.type, 1))) {
        complain("%s is not aligned to its elements", name);
        return false;
    }
    return use_range(uses, name, address, static_cast<size_t>(bytes));
}

static bool overlap(const Layout &layout, const void *pointer, const Layout &other,
                    const void *other_pointer) {
    auto first = reinterpret_cast<uintptr_t>(pointer),
         second = reinterpret_cast<uintptr_t>(other_pointer);
    return first < second + static_cast<uintptr_t>(bytes_of(other.type, other.extent())) &&
           second < first + static_cast<uintptr_t>(bytes_of(layout.type, layout.extent()));
}

cublasStatus_t check_operands(const Product &product, Uses &uses) {
    if (!use_matrix(uses, "A", product.a, product.pointer_a) ||
        !use_matrix(uses, "B", product.b, product.pointer_b) ||
        !use_matrix(uses, "D", product.d, product.pointer_d) ||
        (product.beta != 0 && !use_matrix(uses, "C", product.c, product.pointer_c))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (const float *scale : {product.description.scale_a, product.description.scale_b}) {
        if (scale && !use_range(uses, "scale", reinterpret_cast<uint64_t>(scale), sizeof *scale)) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
    }
    if (overlap(product.a, product.pointer_a, product.d, product.pointer_d) ||
        overlap(product.b, product.pointer_b, product.d, product.pointer_d)) {
        return invalid("D overlaps A or B");
    }
    bool in_place = product.pointer_c == product.pointer_d;
    if (in_place && !(product.c == product.d)) return invalid("C is D, and their layouts differ");
    if (!in_place && product.beta != 0 &&
        overlap(product.c, product.pointer_c, product.d, product.pointer_d)) {
        return invalid("D overlaps C");
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_workspace(void *workspace, size_t bytes, Uses &uses) {
    if (!bytes) return CUBLAS_STATUS_SUCCESS;
    uint64_t address = reinterpret_cast<uint64_t>(workspace);
    if (address % 256) return invalid("the workspace is not aligned to 256 bytes");
    return use_range(uses, "workspace", address, bytes) ? CUBLAS_STATUS_SUCCESS
                                                        : CUBLAS_STATUS_INVALID_VALUE;
}

} // namespace driver
