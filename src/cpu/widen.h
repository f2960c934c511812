/* Between bf16 and fp32, a whole operand at a time: for processors on which oneDNN multiplies fp32 only. */
#ifndef HEARTH_CPU_WIDEN_H
#define HEARTH_CPU_WIDEN_H

#include <stdint.h>

#include "numeric/dtype.h"

void widen(float *out, const bf16 *in, int64_t n);
void narrow(bf16 *out, const float *in, int64_t n); /* to nearest even */

#endif
