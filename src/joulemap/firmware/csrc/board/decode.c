/* Thumb-2 decoder down to instruction classes, for counting.
 *
 * Reference: Armv8-M Architecture Reference Manual (DDI 0553), chapter C2, instruction set encodings.
 */
#include "board.h"

static uint32_t bit_count(uint32_t bits) { return (uint32_t)__builtin_popcount(bits); }

static struct instruction of_class(uint32_t size_b, enum instruction_class class) {
    return (struct instruction){size_b, class, 1};
}

static struct instruction transfer(uint32_t size_b, int is_load, uint32_t registers) {
    return (struct instruction){size_b, is_load ? CLASS_LOAD : CLASS_STORE, registers ? registers : 1};
}

static struct instruction decode_16(uint32_t op) {
    uint32_t top5 = op >> 11;
    uint32_t top4 = op >> 12;
    if (top5 == 0x09) return transfer(2, 1, 1);                                   /* LDR literal */
    if (top4 == 0x5) return transfer(2, ((op >> 9) & 7) >= 3, 1);                 /* register offset */
    if ((op >> 13) == 3 || top4 == 0x8 || top4 == 0x9) return transfer(2, (op & 0x0800) != 0, 1);
    if ((op & 0xfe00) == 0xb400) return transfer(2, 0, bit_count(op & 0x1ff));    /* PUSH */
    if ((op & 0xff00) == 0xbc00) return transfer(2, 1, bit_count(op & 0xff));     /* POP without PC */
    if ((op & 0xff00) == 0xbd00) return (struct instruction){2, CLASS_BRANCH, bit_count(op & 0x1ff)};
    if (top4 == 0xc) return transfer(2, (op & 0x0800) != 0, bit_count(op & 0xff)); /* STM, LDM */
    if (top4 == 0xd) return of_class(2, (op & 0x0f00) >= 0x0e00 ? CLASS_SYSTEM : CLASS_BRANCH);
    if (top5 == 0x1c || (op & 0xff00) == 0x4700 || (op & 0xf500) == 0xb100) return of_class(2, CLASS_BRANCH);
    if ((op & 0xff00) == 0xbf00) return of_class(2, CLASS_OTHER);                 /* IT and hints */
    if ((op & 0xff00) == 0xbe00) return of_class(2, CLASS_SYSTEM);                /* BKPT */
    if ((op & 0xffc0) == 0x4340) return of_class(2, CLASS_MULTIPLY);
    return of_class(2, CLASS_ALU);
}

static struct instruction decode_multiple_or_table(uint32_t first, uint32_t second) {
    if ((first & 0x0040) == 0) return transfer(4, (first & 0x0010) != 0, bit_count(second)); /* LDM, STM */
    if ((first & 0xfff0) == 0xe8d0 && (second & 0xe0) == 0) return of_class(4, CLASS_BRANCH); /* TBB, TBH */
    return transfer(4, (first & 0x0010) != 0, 2);                                 /* LDRD, STRD, exclusive */
}

static struct instruction decode_coprocessor(uint32_t first, uint32_t second) {
    int is_transfer = (first & 0xee00) == 0xec00 && (first & 0xffe0) != 0xec40;
    if (is_transfer) {
        int is_single = (first & 0x0120) == 0x0100;
        return transfer(4, (first & 0x0010) != 0, is_single ? 1 : second & 0xff);
    }
    int is_divide = (first & 0xffb0) == 0xee80 && (second & 0x0e50) == 0x0a00;
    int is_root = (first & 0xffbf) == 0xeeb1 && (second & 0x0ed0) == 0x0ac0;
    return of_class(4, is_divide || is_root ? CLASS_FLOAT_DIVIDE : CLASS_FLOAT);
}

static struct instruction decode_32(uint32_t first, uint32_t second) {
    uint32_t group = (first >> 11) & 3;
    uint32_t op = (first >> 4) & 0x7f;
    if (group == 1) {
        if ((op & 0x60) == 0x00) return decode_multiple_or_table(first, second);
        if ((op & 0x60) == 0x20) return of_class(4, CLASS_ALU);
        return decode_coprocessor(first, second);
    }
    if (group == 2) {
        if (!(second & 0x8000)) return of_class(4, CLASS_ALU);
        int is_system = (second & 0x5000) == 0 && (op & 0x38) == 0x38;
        return of_class(4, is_system ? CLASS_SYSTEM : CLASS_BRANCH);
    }
    if ((op & 0x71) == 0x00) return transfer(4, 0, 1);
    if ((op & 0x61) == 0x01) return transfer(4, 1, 1);
    if ((op & 0x70) == 0x20) return of_class(4, CLASS_ALU);
    if ((first & 0xffd0) == 0xfb90) return of_class(4, CLASS_DIVIDE);
    if ((op & 0x70) == 0x30) return of_class(4, CLASS_MULTIPLY);
    return decode_coprocessor(first, second);
}

struct instruction decode_instruction(const uint8_t *code) {
    uint32_t first = code[0] | (uint32_t)code[1] << 8;
    if ((first >> 11) < 0x1d) return decode_16(first);
    return decode_32(first, code[2] | (uint32_t)code[3] << 8);
}

/* Instructions that an IT makes conditional: 4 less the zeros after the lowest one of its mask. */
static uint32_t conditional_count(uint32_t op) {
    return (op & 0xff00) == 0xbf00 && (op & 0xf) ? 4 - (uint32_t)__builtin_ctz(op & 0xf) : 0;
}

/* Registers that a return by POP or LDM with PC reads; 0 for anything else. */
static uint32_t returned_registers(const uint8_t *code) {
    uint32_t first = code[0] | (uint32_t)code[1] << 8;
    uint32_t second = code[2] | (uint32_t)code[3] << 8;
    if ((first & 0xff00) == 0xbd00) return bit_count(first & 0x1ff);
    return first == 0xe8bd && second & 0x8000 ? bit_count(second) : 0;
}

static void note_conditional(struct block *block, const uint8_t *code, struct instruction found, int is_last) {
    uint32_t returned = returned_registers(code);
    if (returned && is_last) block->tail_b = (uint16_t)(4 * returned);
    else if (returned || found.class == CLASS_LOAD || found.class == CLASS_STORE) block->wavers = 1;
}

/* Fills size, counts, cycles and class energy. A load or store of k registers takes k - 1 cycles more than one. */
void decode_block(const struct board *board, uint32_t address, uint32_t size_b, struct block *block) {
    const struct coefficients *cost = &board->coefficients;
    uint32_t conditional = 0;
    block->size_b = (uint16_t)size_b;
    block->instructions = block->tail_b = block->wavers = 0;
    block->cycles = block->class_fj = 0;
    for (uint32_t offset = 0; offset < size_b && address + offset + 4 <= board->image_b + 4;) {
        const uint8_t *code = board->image + address + offset;
        struct instruction found = decode_instruction(code);
        offset += found.size_b;
        block->instructions++;
        block->cycles += cost->class_cycles[found.class] + found.transfers - 1;
        block->class_fj += cost->class_fj[found.class];
        if (conditional) {
            conditional--;
            note_conditional(block, code, found, offset >= size_b);
        } else {
            conditional = conditional_count(code[0] | (uint32_t)code[1] << 8);
        }
    }
    block->energy_fj = block->class_fj;
}
