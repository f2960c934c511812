/* Scalars for TensorBoard, in its event file format (records of length, masked crc32c, a protobuf
 * Event, masked crc32c).
 *
 * Nothing is written until tensorboard_flush(), which the loop calls once a step, or until the
 * buffer is full. A write that fails is warned about once; its scalars are lost and the file stays
 * valid. */
#ifndef HEARTH_TRAIN_TENSORBOARD_H
#define HEARTH_TRAIN_TENSORBOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TENSORBOARD_TAG_MAX = 127 };

typedef struct TensorBoard {
    int file;
    bool warned;
    int64_t size; /* bytes in the file, whole records only */
    size_t used;  /* bytes in the buffer */
    uint8_t buffer[16384];
} TensorBoard;

/* Starts a new file events.out.tfevents.TIME.HOST.PID in an existing directory; a resumed run adds
 * a file beside the earlier ones. wall_time is in seconds since 1970, here and below. */
bool tensorboard_open(TensorBoard *board, const char *directory, double wall_time, Error *error);
void tensorboard_close(TensorBoard *board);

/* The tag is cut after TENSORBOARD_TAG_MAX bytes. */
void tensorboard_scalar(TensorBoard *board, double wall_time, int64_t step, const char *tag,
                        double value);
void tensorboard_flush(TensorBoard *board);

#endif
