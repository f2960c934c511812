/* Parameters between a running program and files: initial values, loading, saving. */
#ifndef HEARTH_MODEL_PARAMETERS_H
#define HEARTH_MODEL_PARAMETERS_H

#include "files/safetensors.h"
#include "model/config.h"
#include "step/backend.h"

/* Fills the tables that operations read but nothing changes: the rotary table. */
bool model_fill_tables(const Backend *backend, Executor *executor, const Program *program,
                       const ModelConfig *config, Error *error);

/* Sets every parameter (masters and working copies) to its initial value: a function of the seed. */
bool parameters_initialise(const Backend *backend, Executor *executor, const Program *program,
                           uint64_t seed, Error *error);

/* Sets every parameter from a file of tensors by Hugging Face names (fp32, bf16 or fp16). Missing,
 * unknown or misshapen tensors are errors that name the tensor; `path` is for messages. */
bool parameters_load(const Backend *backend, Executor *executor, const Program *program,
                     const Safetensors *file, const char *path, Error *error);

/* What a running program holds, as tensors to be written: their data is copied out of the executor, which
 * must outlive them, when they are. */
typedef struct TensorPlace TensorPlace;
typedef struct ProgramTensors {
    Tensor *tensors;
    TensorPlace *places;
    int count;
} ProgramTensors;
void program_tensors_free(ProgramTensors *tensors);

/* The parameters by their Hugging Face names, in order: the masters in fp32. */
bool parameters_tensors(ProgramTensors *tensors, const Backend *backend, Executor *executor,
                        const Program *program, Error *error);

/* The optimizer's state: AdamW's moments of each of its weights ("layers.0.norm1.moment1"), Muon's momentum
 * and variance of each of its parameters ("model.layers.0.mlp.up_proj.weight.momentum"). */
bool optimizer_tensors(ProgramTensors *tensors, const Backend *backend, Executor *executor,
                       const Program *program, Error *error);

/* The inverse: copies every moment from the file. */
bool optimizer_load(const Backend *backend, Executor *executor, const Program *program,
                    const Safetensors *file, const char *path, Error *error);

#endif
