/* The kernels inside the program: an image for each file of kernels/, made by kernels.cmake. */
#ifndef HEARTH_CUDA_IMAGES_H
#define HEARTH_CUDA_IMAGES_H

#include <stddef.h>

typedef struct KernelImage {
    const char *name;          /* "rmsnorm" */
    const unsigned char *data; /* a fat binary */
} KernelImage;

extern const KernelImage kernel_images[]; /* ends with a name of NULL */
extern const char kernel_chips[];         /* what they were compiled for: "80 90 120f" */

#endif
