/* The llama architecture: RMSNorm, RoPE, grouped-query attention, SwiGLU, no biases (arXiv 2302.13971). */
#ifndef HEARTH_MODEL_LLAMA_H
#define HEARTH_MODEL_LLAMA_H

#include "model/model.h"

extern const Model model_llama;

#endif
