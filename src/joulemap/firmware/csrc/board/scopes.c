/* Which layer the core is in, and the blocks of each.
 *
 * A layer begins at the entry address of its function and ends where that call returns: the address and stack pointer
 * that the call left are remembered. So kernels need no mark, tail calls are safe, and whatever no layer called is gap.
 * Each scope has block prices of its own, since a shared kernel may move other bytes in another layer.
 */
#include <stdlib.h>
#include <string.h>

#include "board.h"

enum { SLAB_BLOCKS = 1024 };

struct slab {
    struct slab *next;
    uint32_t used;
    struct block blocks[SLAB_BLOCKS];
};

struct block *new_block(struct board *board) {
    if (!board->slabs || board->slabs->used == SLAB_BLOCKS) {
        struct slab *slab = calloc(1, sizeof *slab);
        if (!slab) abort();
        slab->next = board->slabs;
        board->slabs = slab;
    }
    return &board->slabs->blocks[board->slabs->used++];
}

void drop_blocks(struct board *board) {
    while (board->slabs) {
        struct slab *next = board->slabs->next;
        free(board->slabs);
        board->slabs = next;
    }
    for (uint32_t scope = 0; scope <= board->layer_count; scope++) {
        free(board->tables[scope]);
        board->tables[scope] = NULL;
    }
    memcpy(board->marks, board->layer_marks, (board->code_b / 2 + 1) * sizeof *board->marks);
}

/* Switches to a scope: closes the span of the last one, changes the factor on the power, swaps the block table. */
void enter_scope(struct board *board, uint32_t scope) {
    close_span(board, board->cycles, board->raw_fj);
    board->factor_true_fj = true_fj(board, board->raw_fj);
    board->factor_raw_fj = board->raw_fj;
    board->factor = (uint64_t)1 << 32;
    if (scope && board->options.layer_factors) board->factor = board->options.layer_factors[scope - 1];
    board->scope = scope;
    if (!board->tables[scope]) {
        board->tables[scope] = calloc(board->code_b / 2 + 1, sizeof(struct block *));
        if (!board->tables[scope]) abort();
    }
    board->table = board->tables[scope];
}

static void mark_return(struct board *board, uint32_t address) {
    if (address >= board->code_b || board->marks[address >> 1] != MARK_NONE) return;
    board->marks[address >> 1] = MARK_RETURN;
    for (uint32_t scope = 0; scope <= board->layer_count; scope++) {
        struct block *known = board->tables[scope] ? board->tables[scope][address >> 1] : NULL;
        if (known) known->mark = MARK_RETURN;
    }
}

static void enter_layer(struct board *board, uint32_t scope, uint32_t return_address, uint32_t sp) {
    if (board->frame_count < MAX_FRAMES)
        board->frames[board->frame_count++] = (struct frame){board->scope, return_address, sp};
    mark_return(board, return_address);
    enter_scope(board, scope);
    board->accounts[scope].entries++;
    if (board->lines_out & LINE_GATE) board->accounts[scope].gate_entries++;
}

/* Acts on a marked block; 1 when the scope changed. A loop back to a layer's own entry is no new entry. */
int follow_mark(struct board *board, void *uc, uint32_t mark, uint32_t address) {
    if (mark == board->scope) return 0;
    if (mark == MARK_RETURN && !board->frame_count) return 0;
    uint32_t lr = 0;
    uint32_t sp = 0;
    int ids[2] = {board->scout.ids[REGISTER_LR], board->scout.ids[REGISTER_SP]};
    void *values[2] = {&lr, &sp};
    board->emulator.read_registers(uc, ids, values, 2);
    if (mark != MARK_RETURN) {
        enter_layer(board, mark, lr & ~1u, sp);
        return 1;
    }
    struct frame *top = &board->frames[board->frame_count - 1];
    if (top->return_address != address || top->return_sp != sp) return 0;
    board->frame_count--;
    enter_scope(board, top->scope);
    return 1;
}
