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

/* The parameters as tensors to be written, in order: [program->parameter_count]. Data are the masters
 * in fp32, or the working copies when `working`. Names belong to the program, data to the executor. */
bool parameters_tensors(const Backend *backend, Executor *executor, const Program *program,
                        bool working, Tensor *tensors, Error *error);

/* The optimizer's moments, one tensor for each moment of each weight ("layers.0.qkv.moment1"): fills at
 * most program->weight_count * 4 tensors and returns their number. Names are allocated; release them
 * with optimizer_tensors_free(). Returns -1 with an error. */
int optimizer_tensors(const Backend *backend, Executor *executor, const Program *program,
                      Tensor *tensors, Error *error);
void optimizer_tensors_free(Tensor *tensors, int count);

/* The inverse: copies every moment from the file. */
bool optimizer_load(const Backend *backend, Executor *executor, const Program *program,
                    const Safetensors *file, const char *path, Error *error);

#endif
