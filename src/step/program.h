/* The program: one training step (and evaluation, and generation) as a flat list of operations over
 * named buffers. Models and optimizers write it, the planner lays it out, a backend runs it. */
#ifndef HEARTH_STEP_PROGRAM_H
#define HEARTH_STEP_PROGRAM_H

#include "base/error.h"
#include "step/operation.h"

/* What a buffer holds: the rows of the memory table. Those up to BUFFER_CACHE live as long as the
 * program; the rest live from their first to their last use and share memory. */
typedef enum BufferKind {
    BUFFER_MASTER,     /* fp32 parameters */
    BUFFER_WORKING,    /* parameters in the storage type */
    BUFFER_GRADIENT,   /* fp32 parameter gradients */
    BUFFER_STATE,      /* optimizer moments */
    BUFFER_INPUT,      /* tokens, targets, tables */
    BUFFER_OUTPUT,     /* losses, norm */
    BUFFER_CACHE,      /* keys and values: live through the generation sections */
    BUFFER_ACTIVATION, /* kept from forward to backward */
    BUFFER_ACTIVATION_GRADIENT,
    BUFFER_LOGITS,
    BUFFER_WORKSPACE, /* scratch of one operation */
    BUFFER_KINDS
} BufferKind;

const char *buffer_kind_name(BufferKind kind);

/* Where a buffer lies. Operations work on the device's memory; to and from the host's there are only
 * copies. */
typedef enum MemorySpace { SPACE_DEVICE, SPACE_HOST, SPACES } MemorySpace;

typedef struct Buffer {
    char name[32];
    BufferKind kind;
    MemorySpace space;
    Dtype dtype;
    int64_t elements;
    int recompute_level; /* dropped after the forward pass at this level of recompute and above; 0 = never */
    int first_use, last_use;
    int64_t offset; /* bytes from the start of its space's arena; set by the planner */
} Buffer;

/* The parts of a program that are run by themselves. */
typedef enum SectionKind {
    SECTION_MICRO_BATCH, /* forward and backward of one micro-batch, gradients added */
    SECTION_UPDATE,      /* gradient norm; optimizer, which zeroes the gradients */
    SECTION_EVALUATE,    /* forward of one micro-batch: losses */
    SECTION_PREFILL,     /* prefill_tokens tokens into the caches */
    SECTION_DECODE,      /* one token into the caches, logits of the next */
    SECTION_SCORE,       /* score_tokens tokens behind the caches, in branches: losses */
    SECTIONS
} SectionKind;

typedef struct Section {
    int first, count; /* operations */
} Section;

/* How a parameter starts. */
typedef enum Initialisation {
    INIT_NORMAL,   /* of deviation init_a */
    INIT_UNIFORM,  /* from init_a to init_b */
    INIT_CONSTANT, /* init_a */
    INIT_LINE,     /* a vector from init_a at its first element to init_b at its last */
} Initialisation;

/* What a weight is to the optimizer, which may treat each kind in its own way. */
typedef enum WeightRole {
    WEIGHT_MATRIX, /* of a layer */
    WEIGHT_VECTOR, /* of a norm */
    WEIGHT_EMBEDDING,
    WEIGHT_HEAD,
    WEIGHT_VALUE_EMBEDDING,
    WEIGHT_SMEAR_GATE,
    WEIGHT_RESIDUAL_SCALE, /* this and those below are precise */
    WEIGHT_INPUT_SCALE,
    WEIGHT_SCALAR,
    WEIGHT_ROLES
} WeightRole;

/* Whether operations read it in fp32 whatever the storage type: by program_precise(). Such weights are
 * declared last. */
static inline bool role_is_precise(WeightRole role) {
    return role >= WEIGHT_RESIDUAL_SCALE;
}

/* Of rank 2 where it is stored as a tensor, else of rank 1. */
static inline bool role_is_matrix(WeightRole role) {
    return role != WEIGHT_VECTOR && !role_is_precise(role);
}

/* A matrix or vector as stored: AdamW's unit. Several parameters (q, k and v), which are Muon's, may be
 * stacked in it, so that one matmul computes them all. */
typedef struct Weight {
    char name[32]; /* "layers.3.qkv" */
    int layer;
    int64_t rows, columns; /* a vector has rows = 1 */
    int64_t offset;        /* elements from the start of the master, working and gradient buffers */
    WeightRole role;
    int64_t
        state_offset; /* elements from the start of AdamW's state buffers; -1: Muon updates it */
} Weight;

/* A parameter by its Hugging Face name: rows of a weight. */
typedef struct Parameter {
    char name[80];
    int weight;
    int64_t first_row, rows;
    Initialisation initialisation;
    float init_a, init_b;
    int64_t momentum_offset, variance_offset; /* elements from the start of Muon's; -1: AdamW's */
} Parameter;

typedef struct Program {
    Buffer *buffers;
    Operation *operations;
    Weight *weights;
    Parameter *parameters;
    int buffer_count, operation_count, weight_count, parameter_count;
    size_t buffer_capacity, operation_capacity, weight_capacity, parameter_capacity;
    Section sections[SECTIONS];
    SectionKind open_section; /* the one that program_add() appends to */
    int backward_begin;       /* first operation of the backward pass; 0 = there is none */
    bool failed;              /* memory ran out while it was written; program_finish() reports it */
    Operation spare;          /* takes what is written once that has happened */

    Dtype storage;                   /* of activations and working weights */
    int64_t B, T;                    /* shape of a micro-batch */
    int64_t prefill_tokens, context; /* of generation: tokens of a prefill, rows of the caches */
    int64_t score_tokens;            /* of the score section */

    /* Buffers that others look for; -1 where the program has none. */
    int master, working, gradient;
    int precise;            /* the precise weights in fp32, beginning with that of precise_offset */
    int64_t precise_offset; /* 0 where it is the masters, or the working copies */
    int moment1, moment2, absmax1, absmax2; /* of AdamW's weights */
    int momentum, variance;                 /* of Muon's */
    int tokens, targets, document_start, losses, loss_sum, gradient_norm, cos_sin;
    int new_tokens, logits; /* generation: [prefill_tokens] in, [V] fp32 out */
    int previous_tokens; /* generation and score: the token before each, or -1; where the model has it */
    int score_input, score_start, score_targets, score_losses, score_best; /* [score_tokens] */

    /* Set by layout_program(). */
    int64_t arena_bytes, host_bytes; /* of the device's arena, and of the host's */
    int64_t
        kind_bytes[BUFFER_KINDS]; /* share of each kind at the peak; they add up to arena_bytes */
} Program;

void program_init(Program *program, Dtype storage);
void program_free(Program *program);

/* The emitting functions below cannot fail one by one; this tells whether all succeeded. */
bool program_finish(const Program *program, Error *error);

void program_begin_section(Program *program, SectionKind kind);

/* Adds a buffer and returns its index. */
int program_buffer(Program *program, BufferKind kind, Dtype dtype, int64_t elements,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Adds an operation with no operands, to be filled in; never NULL. */
Operation *program_add(Program *program, OperationKind kind, int layer);

/* Adds a weight; its offset is a multiple of 256 elements, the block of 8-bit optimizer states. */
int program_weight(Program *program, int layer, int64_t rows, int64_t columns, WeightRole role,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Adds a parameter: the next `rows` rows of the weight added last. */
void program_parameter(Program *program, int64_t rows, Initialisation initialisation, float init_a,
                       float init_b, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Elements of the flat master, working and gradient buffers. */
int64_t program_weight_elements(const Program *program);

/* Makes the flat buffers of the weights: for training masters, working copies and gradients; for
 * inference only working copies, and the precise weights in fp32. */
void program_make_weight_buffers(Program *program, bool training);

static inline Operand whole(int buffer) {
    return (Operand){buffer, 0};
}

/* The operands of a weight. */
Operand program_working(const Program *program, int weight);
Operand program_gradient(const Program *program, int weight);
Operand program_precise(const Program *program, int weight);

static inline int64_t buffer_bytes(const Buffer *buffer) {
    return buffer->elements * dtype_size(buffer->dtype);
}

/* Where an operand lies once the program is laid out: bytes from the start of its space's arena. */
static inline int64_t program_place(const Program *program, Operand operand) {
    const Buffer *buffer = &program->buffers[operand.buffer];
    return buffer->offset + operand.offset * dtype_size(buffer->dtype);
}

/* Whether a buffer lives as long as the program rather than from first to last use. */
static inline bool buffer_is_persistent(const Buffer *buffer) {
    return buffer->kind < BUFFER_CACHE;
}

#endif
