/* A small training program at hand, for tests of the room train and those below it: any model, weights and
 * data set by the test, losses and gradients to read. */
#ifndef HEARTH_TESTS_TRAINING_H
#define HEARTH_TESTS_TRAINING_H

#include "cpu/backend.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "step/offload.h"
#include "step/recompute.h"

typedef struct Training {
    const Backend *backend;
    Program program;
    Executor *executor;
    ModelConfig config;
    int64_t batch_tokens;
    float momentum, weight_decay; /* Muon's scalars of the steps to come: 0.95 and 1 at first */
    float *copy;                  /* of the parameter that was asked for last */
} Training;

typedef struct TrainingSettings {
    Dtype storage;
    int64_t micro_batch, batch_tokens, logit_chunk;
    bool document_mask;
    RecomputeLevel recompute;
    Offload offload;
    OptimizerSettings optimizer;
    bool evaluation;                 /* with an evaluation section */
    int64_t context, prefill, score; /* with generation sections, if the context is not 0 */
} TrainingSettings;

/* A llama of two layers, the first of them windowed, that a test trains in no time. */
ModelConfig small_llama(int64_t vocab, int64_t sequence_length);

/* How many steps a test that wants `steps` is to make: at most HEARTH_TEST_STEPS, for where a GPU is
 * emulated. */
int64_t training_steps(int64_t steps);

/* Each fails the test when it cannot do what it says. */
void training_open(Training *training, const ModelConfig *config, const TrainingSettings *settings);
void training_close(Training *training);

/* The index of the parameter of that name. */
int training_find(const Training *training, const char *name);

/* Sets parameter `index` (masters and working copy) from fp32 values. */
void training_set(Training *training, int index, const float *values);
int64_t training_parameter_elements(const Training *training, int index);

/* The fp32 gradient and master of a parameter; valid until the next is asked for. */
const float *training_gradient(Training *training, int index);
const float *training_master(Training *training, int index);

/* Overwrites one element of the gradient of a parameter. */
void training_set_gradient(Training *training, int index, int64_t element, float value);

/* Forward and backward of one micro-batch; returns the sum of its losses. document_start may be NULL. */
double training_micro_batch(Training *training, const int32_t *tokens, const int32_t *targets,
                            const int32_t *document_start);

/* Another section, after what it reads was uploaded. */
void training_run(Training *training, SectionKind section, const StepScalars *scalars);
void training_upload(Training *training, int buffer, const void *from, int64_t bytes);
void training_download(Training *training, int buffer, void *to, int64_t bytes);

/* The optimizer's update after micro-batches with `targets` counted targets; returns the gradient's norm. */
float training_update(Training *training, int64_t step, float learning_rate, int64_t targets);

#endif
