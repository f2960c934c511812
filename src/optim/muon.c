#include "optim/muon.h"

#include <math.h>

#include "base/integer.h"

/* Polar Express: five polynomials for singular values from 2e-2 on (arXiv 2505.16932, with cushion 2). */
enum { ITERATIONS = 5 };
static const double coefficients[ITERATIONS][3] = {
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
};

/* Places in the state begin where vectors may. */
static int64_t take(int64_t *end, int64_t elements) {
    int64_t offset = *end;
    *end += divide_up(elements, STATE_BLOCK) * STATE_BLOCK;
    return offset;
}

static Dtype momentum_dtype(const OptimizerSettings *settings) {
    return settings->state == STATE_FP32 ? DTYPE_F32 : DTYPE_BF16;
}

MuonBuffers muon_make_buffers(Program *program, const OptimizerSettings *settings) {
    int64_t momentum = 0, variance = 0, most = 0, side = 0;
    for (int i = 0; i < program->parameter_count; i++) {
        Parameter *parameter = &program->parameters[i];
        const Weight *weight = &program->weights[parameter->weight];
        int64_t rows = parameter->rows, columns = weight->columns;
        parameter->momentum_offset = parameter->variance_offset = -1;
        if (!settings->groups[weight->role].muon) continue;
        parameter->momentum_offset = take(&momentum, rows * columns);
        parameter->variance_offset = take(&variance, larger(rows, columns));
        most = larger(most, rows * columns);
        side = larger(side, smaller(rows, columns));
    }
    if (!most) return (MuonBuffers){-1, -1, -1, -1, -1};
    program->momentum =
        program_buffer(program, BUFFER_STATE, momentum_dtype(settings), momentum, "momentum");
    program->variance = program_buffer(program, BUFFER_STATE, DTYPE_F32, variance, "variance");
    static const char *const names[] = {"muon X", "muon X'", "muon XX", "muon XXXX", "muon P"};
    int buffers[5];
    for (int i = 0; i < 5; i++)
        buffers[i] = program_buffer(program, BUFFER_WORKSPACE, program->storage,
                                    i < 2 ? most : side * side, "%s", names[i]);
    return (MuonBuffers){buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]};
}

static void multiply(Program *program, int layer, int out, int a, int b, MatmulShape shape) {
    Operation *operation = program_add(program, OP_MATMUL, layer);
    operation->outputs[0] = whole(out);
    operation->inputs[0] = whole(a);
    operation->inputs[1] = whole(b);
    operation->matmul = shape;
    operation->matmul.role = MATMUL_UPDATE;
}

/* next = (a I + b X Xᵀ + c (X Xᵀ)²) X, of X[m,n] */
static void iterate(Program *program, int layer, const MuonBuffers *buffers, int64_t m, int64_t n,
                    const double abc[3]) {
    multiply(program, layer, buffers->square, buffers->update, buffers->update,
             (MatmulShape){.M = m, .N = m, .K = n, .transpose_b = true});
    multiply(program, layer, buffers->fourth, buffers->square, buffers->square,
             (MatmulShape){.M = m, .N = m, .K = m});
    Operation *operation = program_add(program, OP_MUON_POLYNOMIAL, layer);
    operation->outputs[0] = whole(buffers->multiplier);
    operation->inputs[0] = whole(buffers->square);
    operation->inputs[1] = whole(buffers->fourth);
    operation->polynomial =
        (PolynomialShape){.m = m, .a = (float)abc[0], .b = (float)abc[1], .c = (float)abc[2]};
    multiply(program, layer, buffers->next, buffers->multiplier, buffers->update,
             (MatmulShape){.M = m, .N = n, .K = m});
}

static MuonShape shape_of(const Program *program, int index, const OptimizerSettings *settings) {
    const Parameter *parameter = &program->parameters[index];
    const Weight *weight = &program->weights[parameter->weight];
    const OptimizerGroup *group = &settings->groups[weight->role];
    double tallness = (double)parameter->rows / (double)weight->columns;
    return (MuonShape){.rows = parameter->rows,
                       .columns = weight->columns,
                       .momentum = momentum_dtype(settings),
                       .rate = (float)((double)group->rate * sqrt(fmax(1, tallness))),
                       .weight_decay = group->weight_decay,
                       .beta2 = group->beta2,
                       .clip_norm = settings->clip_norm,
                       .tensor = (uint32_t)(program->weight_count + index)};
}

void muon_write(Program *program, int index, const OptimizerSettings *settings,
                const MuonBuffers *buffers) {
    const Parameter *parameter = &program->parameters[index];
    const Weight *weight = &program->weights[parameter->weight];
    int64_t offset = weight->offset + parameter->first_row * weight->columns;
    MuonShape shape = shape_of(program, index, settings);
    MuonBuffers at = *buffers;

    Operation *begin = program_add(program, OP_MUON_BEGIN, weight->layer);
    begin->outputs[0] = whole(at.update);
    begin->outputs[1] = (Operand){program->momentum, parameter->momentum_offset};
    begin->outputs[2] = (Operand){program->gradient, offset};
    begin->inputs[0] = whole(program->gradient_norm);
    begin->muon = shape;

    for (int i = 0; i < ITERATIONS; i++) {
        iterate(program, weight->layer, &at, smaller(shape.rows, shape.columns),
                larger(shape.rows, shape.columns), coefficients[i]);
        int used = at.update;
        at.update = at.next, at.next = used;
    }

    Operation *end = program_add(program, OP_MUON_END, weight->layer);
    end->outputs[0] = (Operand){program->master, offset};
    if (program->working != program->master) end->outputs[1] = (Operand){program->working, offset};
    end->outputs[2] = (Operand){program->variance, parameter->variance_offset};
    end->inputs[0] = whole(at.update);
    end->inputs[1] = whole(program->gradient_norm);
    end->muon = shape;
}
