/* How documents fill the rows of a batch, and how far attention sees in them. A model's loss on a dataset is
 * comparable only in the rows that it was trained on. */
#ifndef HEARTH_TRAIN_ROWS_H
#define HEARTH_TRAIN_ROWS_H

#include "data/loader.h"
#include "model/config.h"

typedef struct Rows {
    Packing packing;
    bool document_mask; /* attention stays inside documents */
} Rows;

/* What training takes unless told otherwise. */
Rows rows_of_architecture(const ModelConfig *config);

/* Those that a checkpoint was trained on, as its train_state.json records; without that record (a model
 * from elsewhere; in version 1 that of the attention) those of its architecture. A damaged train_state.json is
 * an error. */
bool rows_of_checkpoint(const char *checkpoint, const ModelConfig *config, Rows *rows,
                        Error *error);

/* "inside documents" or "across documents". */
const char *attention_name(bool document_mask);

#endif
