/* Lifetimes and offsets, for each memory space by itself. The operations of all sections stand on one time
 * line, so sections overlay each other as activations do: evaluation uses the memory of the backward pass. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "step/backend.h"
#include "step/planner.h"

enum { ALIGNMENT = 256 };

static int64_t aligned(int64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool add_workspaces(Program *program, const Backend *backend, Error *error) {
    for (int o = 0; o < program->operation_count; o++) {
        int64_t bytes = backend->workspace(program, &program->operations[o], error);
        if (bytes < 0) return false;
        if (!bytes) continue;
        int buffer = program_buffer(program, BUFFER_WORKSPACE, DTYPE_U8, bytes, "workspace %d", o);
        program->operations[o].workspace = (Operand){buffer, 0};
    }
    return program_finish(program, error);
}

typedef struct Placed {
    int64_t offset, end;
    int first, last, buffer;
} Placed;

/* What a layout is worked out in. */
typedef struct Scratch {
    int *leader;     /* [buffers] the buffer whose offset each takes */
    int64_t *change; /* [operations + 1], zeroed: bytes more alive from each on, or fewer */
    Placed *items;   /* [2 * buffers] */
} Scratch;

static void scratch_free(Scratch *scratch) {
    free(scratch->leader);
    free(scratch->change);
    free(scratch->items);
}

static bool scratch_make(Scratch *scratch, const Program *program, Error *error) {
    size_t buffers = (size_t)program->buffer_count, operations = (size_t)program->operation_count;
    *scratch = (Scratch){0};
    scratch->leader = allocate(buffers, sizeof *scratch->leader, error);
    if (scratch->leader) scratch->change = allocate(operations + 1, sizeof *scratch->change, error);
    if (scratch->change) scratch->items = allocate(buffers, 2 * sizeof *scratch->items, error);
    if (scratch->items) return true;
    scratch_free(scratch);
    return false;
}

/* Bytes that are alive from operation `first` to `last`. */
static void note_life(int64_t *change, int first, int last, int64_t bytes) {
    change[first] += bytes;
    change[last + 1] -= bytes;
}

/* The most that is alive at once, and when first. */
static int64_t find_peak(const int64_t *change, int operations, int *moment) {
    int64_t alive = 0, most = 0;
    *moment = 0;
    for (int o = 0; o < operations; o++) {
        alive += change[o];
        if (alive > most) most = alive, *moment = o;
    }
    return most;
}

static void touch(Program *program, Operand operand, int when) {
    if (operand.buffer < 0) return;
    Buffer *buffer = &program->buffers[operand.buffer];
    if (buffer->first_use < 0) buffer->first_use = when;
    buffer->last_use = when;
}

static void find_lifetimes(Program *program) {
    for (int b = 0; b < program->buffer_count; b++)
        program->buffers[b].first_use = program->buffers[b].last_use = -1;
    for (int o = 0; o < program->operation_count; o++) {
        const Operation *operation = &program->operations[o];
        for (int i = 0; i < OPERATION_INPUTS; i++) touch(program, operation->inputs[i], o);
        for (int i = 0; i < OPERATION_OUTPUTS; i++) touch(program, operation->outputs[i], o);
        touch(program, operation->workspace, o);
    }
    Section prefill = program->sections[SECTION_PREFILL],
            decode = program->sections[SECTION_DECODE], score = program->sections[SECTION_SCORE];
    for (int b = 0; b < program->buffer_count; b++) {
        Buffer *buffer = &program->buffers[b];
        if (buffer->kind != BUFFER_CACHE) continue;
        buffer->first_use = prefill.count ? prefill.first : decode.first;
        buffer->last_use = decode.first + decode.count + score.count - 1;
    }
}

/* The input whose memory output 0 may take over, or -1. Not a matmul's addend: a product that adds in
 * place may add in another order, and then recompute, which decides where buffers die, would change
 * bits. */
static int in_place_input(const Operation *operation) {
    switch (operation->kind) {
    case OP_ROPE_FORWARD:
    case OP_ROPE_BACKWARD:
    case OP_QKV_FORWARD:
    case OP_QKV_BACKWARD:
    case OP_RELU2_BACKWARD:
    case OP_BLEND_BACKWARD:
        return 0;
    case OP_RMSNORM_BACKWARD:
        return 1;
    default:
        return -1;
    }
}

/* Joins buffers that can share memory in place: leader[b] is the buffer whose offset b takes, and the
 * leader's lifetime covers all. */
static void join_in_place(Program *program, int *leader) {
    for (int b = 0; b < program->buffer_count; b++) leader[b] = b;
    for (int o = 0; o < program->operation_count; o++) {
        const Operation *operation = &program->operations[o];
        int position = in_place_input(operation);
        if (position < 0 || operation->inputs[position].buffer < 0) continue;
        int input = leader[operation->inputs[position].buffer],
            output = operation->outputs[0].buffer;
        Buffer *from = &program->buffers[input], *to = &program->buffers[output];
        if (buffer_is_persistent(from) || buffer_is_persistent(to) || input == output) continue;
        if (from->last_use != o || to->first_use != o || buffer_bytes(from) != buffer_bytes(to))
            continue;
        leader[output] = input;
        from->last_use = to->last_use;
    }
}

static int by_size(const void *a, const void *b) {
    const Placed *left = a, *right = b;
    int64_t difference = (right->end - right->offset) - (left->end - left->offset);
    return difference ? (difference > 0 ? 1 : -1) : left->buffer - right->buffer;
}

/* Lowest offset where `item` meets none of the placed ones that live while it does; those are kept
 * sorted by offset. Then inserts it. */
static void place(Placed *placed, int count, Placed item) {
    int64_t size = item.end - item.offset, offset = 0;
    for (int i = 0; i < count; i++) {
        if (placed[i].last < item.first || placed[i].first > item.last) continue;
        if (placed[i].offset - offset >= size) break;
        if (placed[i].end > offset) offset = placed[i].end;
    }
    item.offset = offset, item.end = offset + size;
    int position = count;
    while (position > 0 && placed[position - 1].offset > offset) position--;
    memmove(placed + position + 1, placed + position, (size_t)(count - position) * sizeof *placed);
    placed[position] = item;
}

static int64_t place_persistent(Program *program, MemorySpace space) {
    int64_t offset = 0;
    for (int b = 0; b < program->buffer_count; b++) {
        Buffer *buffer = &program->buffers[b];
        if (!buffer_is_persistent(buffer) || buffer->space != space) continue;
        buffer->offset = offset;
        offset += aligned(buffer_bytes(buffer));
        if (space == SPACE_DEVICE)
            program->kind_bytes[buffer->kind] += aligned(buffer_bytes(buffer));
    }
    return offset;
}

/* Shares of the kinds at the moment when most is alive; what the layout loses in gaps is workspace. */
static void share_peak(Program *program, const Placed *placed, int count, int64_t extent,
                       int64_t *change) {
    int moment;
    for (int i = 0; i < count; i++)
        note_life(change, placed[i].first, placed[i].last, placed[i].end - placed[i].offset);
    int64_t most = find_peak(change, program->operation_count, &moment);
    for (int i = 0; i < count; i++)
        if (placed[i].first <= moment && moment <= placed[i].last)
            program->kind_bytes[program->buffers[placed[i].buffer].kind] +=
                placed[i].end - placed[i].offset;
    if (count) program->kind_bytes[BUFFER_WORKSPACE] += extent - most;
}

/* Returns where the space's arena ends. */
static int64_t place_transient(Program *program, MemorySpace space, const Scratch *scratch,
                               int64_t base) {
    int count = 0;
    const int *leader = scratch->leader;
    Placed *items = scratch->items, *placed = items + program->buffer_count;
    for (int b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        if (buffer_is_persistent(buffer) || buffer->space != space) continue;
        if (leader[b] != b || buffer->first_use < 0) continue;
        items[count++] = (Placed){.end = aligned(buffer_bytes(buffer)),
                                  .first = buffer->first_use,
                                  .last = buffer->last_use,
                                  .buffer = b};
    }
    qsort(items, (size_t)count, sizeof *items, by_size);
    int64_t extent = 0;
    for (int i = 0; i < count; i++) place(placed, i, items[i]);
    for (int i = 0; i < count; i++) {
        program->buffers[placed[i].buffer].offset = base + placed[i].offset;
        if (placed[i].end > extent) extent = placed[i].end;
    }
    for (int b = 0; b < program->buffer_count; b++)
        program->buffers[b].offset = program->buffers[leader[b]].offset;
    if (space == SPACE_DEVICE) share_peak(program, placed, count, extent, scratch->change);
    return base + extent;
}

int64_t program_live_bytes(Program *program, Error *error) {
    Scratch scratch;
    int64_t persistent = 0;
    int moment;
    if (!scratch_make(&scratch, program, error)) return -1;
    find_lifetimes(program);
    join_in_place(program, scratch.leader);
    for (int b = 0; b < program->buffer_count; b++) {
        const Buffer *buffer = &program->buffers[b];
        if (buffer->space != SPACE_DEVICE) continue;
        if (buffer_is_persistent(buffer))
            persistent += buffer_bytes(buffer);
        else if (scratch.leader[b] == b && buffer->first_use >= 0)
            note_life(scratch.change, buffer->first_use, buffer->last_use, buffer_bytes(buffer));
    }
    int64_t most = find_peak(scratch.change, program->operation_count, &moment);
    scratch_free(&scratch);
    return persistent + most;
}

bool layout_program(Program *program, const Backend *backend, Error *error) {
    Scratch scratch;
    if (!add_workspaces(program, backend, error) || !scratch_make(&scratch, program, error))
        return false;
    int64_t *const ends[SPACES] = {&program->arena_bytes, &program->host_bytes};
    find_lifetimes(program);
    join_in_place(program, scratch.leader);
    memset(program->kind_bytes, 0, sizeof program->kind_bytes);
    for (MemorySpace space = SPACE_DEVICE; space < SPACES; space++)
        *ends[space] = place_transient(program, space, &scratch, place_persistent(program, space));
    scratch_free(&scratch);
    return true;
}
