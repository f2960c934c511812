# Of one chip; see check-kernels.sh. Reads gates.txt, then the PTX of each file of kernels (NAME.sm_XX.ptx) and
# what ptxas said of it (NAME.sm_XX.txt).

function fail(kernel, why) {
    print "sm_" chip " " kernel ": " why > "/dev/stderr"
    failures++
}

function round_up(n, unit) { return int((n + unit - 1) / unit) * unit }
function smaller(a, b) { return a < b ? a : b }

# Blocks on an SM at a time. Registers are given to warps by 256, to warps in fours; each block takes 1 KB of
# shared memory more than it has.
function blocks_per_sm(threads, registers, shared,    warps, register_warps, blocks) {
    warps = int((threads + 31) / 32)
    register_warps = int(65536 / round_up(registers * 32, 256) / 4) * 4
    blocks = smaller(sm_blocks, int(sm_warps / warps))
    blocks = smaller(blocks, int(register_warps / warps))
    return smaller(blocks, int(sm_shared / round_up(shared + 1024, 128)))
}

# Whether an instruction is one that gates.txt names: by its beginning, or an access of 128 bits.
function is_instruction(opcode, name) {
    if (name == "load128" || name == "store128")
        return opcode ~ (name == "load128" ? "^ld\\.global" : "^st\\.global") &&
            opcode ~ /\.(v4\.[busf]32|v2\.[busf]64)$/
    return index(opcode, name) == 1
}

FILENAME ~ /gates\.txt$/ {
    if ($0 ~ /^#/ || NF == 0) next
    if ($1 in dynamic) fail($1, "two lines in gates.txt")
    dynamic[$1] = $2
    least_warps[$1] = $3
    for (i = 4; i <= NF; i++) needed[$1, i] = $i
    words[$1] = NF
    next
}

FILENAME ~ /\.ptx$/ {
    if (match($0, /\.entry [A-Za-z0-9_]+/)) kernel = substr($0, RSTART + 7, RLENGTH - 7)
    if ($1 == ".maxntid") threads[kernel] = $2 + 0
    opcode = $1 ~ /^@/ ? $2 : $1
    for (i = 4; i <= words[kernel]; i++)
        if (is_instruction(opcode, needed[kernel, i])) found[kernel, i] = 1
    next
}

/Compiling entry function/ {
    split($0, quoted, "'")
    kernel = quoted[2]
    kernels[++count] = kernel
}

/stack frame/ { if ($1 + $5 + $9 > 0) fail(kernel, $0) }

/Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    registers[kernel] = substr($0, RSTART + 5, RLENGTH - 5) + 0
    static[kernel] = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART) + 0 : 0
}

END {
    print "### sm_" chip "\n"
    print "| kernel | threads | registers | static shared | dynamic shared | warps per SM |"
    print "|---|---:|---:|---:|---:|---:|"
    for (i = 1; i <= count; i++) {
        kernel = kernels[i]
        compiled[kernel] = 1
        if (!(kernel in dynamic)) {
            fail(kernel, "no line in src/cuda/kernels/gates.txt")
            continue
        }
        shared = static[kernel] + dynamic[kernel]
        if (!threads[kernel]) fail(kernel, "no launch bounds: write it with KERNEL()")
        if (shared > block_shared) fail(kernel, shared " bytes of shared memory, of " block_shared)
        warps = blocks_per_sm(threads[kernel], registers[kernel], shared) * int((threads[kernel] + 31) / 32)
        if (warps == 0) fail(kernel, "a block does not fit into an SM")
        if (warps < least_warps[kernel])
            fail(kernel, warps " warps per SM, not " least_warps[kernel] ": " registers[kernel] \
                " registers, " shared " bytes of shared memory")
        for (j = 4; j <= words[kernel]; j++)
            if (!((kernel, j) in found)) fail(kernel, "no instruction " needed[kernel, j])
        printf "| %s | %d | %d | %d | %d | %d |\n", kernel, threads[kernel], registers[kernel], \
            static[kernel], dynamic[kernel], warps
    }
    print ""
    for (kernel in dynamic)
        if (!(kernel in compiled)) fail(kernel, "a line in gates.txt for no kernel")
    exit failures > 0
}
