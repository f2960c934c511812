/* The choice of a kernel instance, and what is said when there is none. */
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels.h"
#include "support.h"

static void test_best_is_usable(void **state) {
    (void)state;
    Error error;
    unsetenv("HEARTH_ISA");
    const CpuKernels *single = cpu_kernels(DTYPE_F32, &error);
    const CpuKernels *half = cpu_kernels(DTYPE_BF16, &error);
    assert_non_null(single);
    assert_non_null(half);
    assert_int_equal(single->storage, DTYPE_F32);
    assert_int_equal(half->storage, DTYPE_BF16);
    assert_string_equal(single->isa, half->isa);
    assert_true(half->measure_peak(0.02) > 1e8);
}

static void test_named(void **state) {
    (void)state;
    Error error;
    setenv("HEARTH_ISA", "portable", 1);
    assert_non_null(cpu_kernels(DTYPE_F32, &error));
    setenv("HEARTH_ISA", "mmx", 1);
    assert_fails_with(cpu_kernels(DTYPE_F32, &error), error,
                      "HEARTH_ISA=mmx is no instruction set");
    assert_non_null(strstr(error.message, "use one of: "));
    unsetenv("HEARTH_ISA");
    assert_fails_with(cpu_kernels(DTYPE_I32, &error), error, "int32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_is_usable),
        cmocka_unit_test(test_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
