/* What every kernel source includes: the contract, the vector layer, and the prototypes of this
 * instance's kernels. A new kernel is a member of CpuKernels, a row here and a source file. */
#ifndef HEARTH_CPU_KERNELS_INSTANCE_H
#define HEARTH_CPU_KERNELS_INSTANCE_H

#include "cpu/kernels.h"
#include "cpu/vector.h"

#define KERNEL_LIST(X) \
    X(matmul) \
    X(matmul_workspace) \
    X(weight_gradient) \
    X(weight_gradient_workspace) \
    X(embedding_forward) \
    X(embedding_backward) \
    X(rmsnorm_forward) \
    X(rmsnorm_backward) \
    X(rmsnorm_workspace) \
    X(rope) \
    X(qkv_forward) \
    X(qkv_backward) \
    X(swiglu_forward) \
    X(swiglu_backward) \
    X(relu2_forward) \
    X(relu2_backward) \
    X(gate_forward) \
    X(gate_backward) \
    X(gate_workspace) \
    X(smear_forward) \
    X(smear_backward) \
    X(smear_workspace) \
    X(blend_forward) \
    X(blend_backward) \
    X(blend_workspace) \
    X(cross_entropy) \
    X(cross_entropy_workspace) \
    X(soft_cap) \
    X(squared_norm) \
    X(adamw) \
    X(muon_begin) \
    X(muon_polynomial) \
    X(muon_end) \
    X(muon_workspace) \
    X(attention_forward) \
    X(attention_backward) \
    X(attention_workspace) \
    X(attention_decode) \
    X(measure_peak)

/* The type of a kernel is that of its member in the table. */
#define KERNEL_DECLARE(name) __typeof__(*((CpuKernels *)0)->name) KERNEL(name);
KERNEL_LIST(KERNEL_DECLARE)

#endif
