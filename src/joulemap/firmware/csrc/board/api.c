/* What the worker program calls: make, reset, run, let time pass, look. */
#include <stdlib.h>
#include <string.h>

#include "board.h"

struct description {
    const uint8_t *image;
    uint32_t image_b;
    uint32_t code_b;
    uint8_t *ram;
    uint32_t ram_b;
    uint32_t layer_count;
    const uint32_t *layer_entries;
};

EXPORT void board_delete(struct board *board) {
    if (!board) return;
    if (board->tables) drop_blocks(board);
    free(board->image);
    free(board->accounts);
    free(board->layer_marks);
    free(board->marks);
    free(board->tables);
    free(board);
}

static int allocate(struct board *board) {
    uint32_t marks = board->code_b / 2 + 1;
    board->image = malloc((size_t)board->image_b + 4);
    board->accounts = calloc(board->layer_count + 1, sizeof *board->accounts);
    board->layer_marks = calloc(marks, sizeof *board->layer_marks);
    board->marks = calloc(marks, sizeof *board->marks);
    board->tables = calloc(board->layer_count + 1, sizeof *board->tables);
    return board->image && board->accounts && board->layer_marks && board->marks && board->tables;
}

/* A board with an image in flash; NULL without memory. */
EXPORT struct board *board_new(const struct description *what, const struct coefficients *coefficients,
                               const struct emulator *emulator, const int *register_ids) {
    struct board *board = calloc(1, sizeof *board);
    if (!board) return NULL;
    board->image_b = what->image_b;
    board->code_b = what->code_b;
    board->ram = what->ram;
    board->ram_b = what->ram_b;
    board->layer_count = what->layer_count;
    board->coefficients = *coefficients;
    board->emulator = *emulator;
    if (!allocate(board)) {
        board_delete(board);
        return NULL;
    }
    memcpy(board->image, what->image, what->image_b);
    memset(board->image + what->image_b, 0xff, 4);
    for (uint32_t k = 0; k < what->layer_count; k++)
        if (what->layer_entries[k] < what->code_b) board->layer_marks[what->layer_entries[k] >> 1] = (uint16_t)(k + 1);
    for (int k = 0; k < REGISTER_COUNT; k++) {
        board->scout.ids[k] = register_ids[k];
        board->scout.slots[k] = &board->scout.values[k];
    }
    return board;
}

static uint64_t nearest(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Starts anew: time, energy, lines, counts and block prices. `scout` is a second emulator on the same RAM, or NULL. */
EXPORT void board_reset(struct board *board, const struct run_options *options, void *scout) {
    uint32_t code_b = board->code_b;
    memset(board, 0, offsetof(struct board, coefficients));
    board->code_b = code_b;
    memset(board->accounts, 0, (board->layer_count + 1) * sizeof *board->accounts);
    drop_blocks(board);
    board->options = *options;
    board->scout.uc = scout;
    board->scout.runs = board->scout.overflowed = 0;
    board->period_ns = board->coefficients.period_ns;
    board->throttled_since_ns = board->pause_ns = NEVER;
    board->limit_ns = nearest(options->deadline_ns, options->brown_out_ns);
    board->row_next_ns = options->rows ? options->row_ns : NEVER;
    board->factor = (uint64_t)1 << 32;
    board->cycle_counter_on = 1;
    board->random_state = board->audit_in_rows = 1;
    enter_scope(board, 0);
    set_base_draw(board);
    plan_next_event(board);
}

/* 1 when the wake-up was due; it comes once. */
static int take_wake_up(struct board *board) {
    if (!board->wake_ns || board->wake_ns > time_at(board, board->cycles)) return 0;
    board->wake_ns = 0;
    return 1;
}

/* Before the emulator runs: which lines stop it and at which time at the latest. Wakes a sleeping core. */
EXPORT void board_resume(struct board *board, uint32_t wanted_lines, uint64_t pause_ns) {
    board->stop = STOP_NONE;
    board->wanted = wanted_lines;
    board->limit_ns = nearest(nearest(board->options.deadline_ns, board->options.brown_out_ns), pause_ns);
    if (board->core_state == CORE_ASLEEP) {
        take_wake_up(board);
        set_core_state(board, CORE_AWAKE);
        uint64_t cycles = board->coefficients.wake_cycles;
        spend(board, cycles, cycles * board->fj_per_cycle);
    }
    plan_next_event(board);
}

/* After the emulator came back without a stop: the core sleeps, unless its wake-up is already pending; 1 if it sleeps. */
EXPORT int board_fell_asleep(struct board *board) {
    if (take_wake_up(board)) return 0;
    set_core_state(board, CORE_ASLEEP);
    return 1;
}

/* After a fault: the core is locked up until reset. */
EXPORT void board_locked_up(struct board *board) { set_core_state(board, CORE_LOCKED); }

/* Lets time pass while the core executes nothing, at most to its own wake-up or to a limit of the run. */
EXPORT void board_pass_time(struct board *board, uint64_t until_ns) {
    uint64_t now_ns = time_at(board, board->cycles);
    uint64_t end_ns = board->options.deadline_ns;
    if (board->core_state == CORE_ASLEEP && board->wake_ns > now_ns) end_ns = nearest(end_ns, board->wake_ns);
    if (board->core_state != CORE_UNPOWERED) end_ns = nearest(end_ns, board->options.brown_out_ns);
    end_ns = nearest(end_ns, until_ns);
    while (now_ns < end_ns) {
        uint64_t step_ns = nearest(end_ns, board->options.throttle_ns > now_ns ? board->options.throttle_ns : NEVER);
        if (board->options.throttle_ns <= now_ns) {
            start_throttle(board);
            step_ns = end_ns;
        }
        uint64_t cycles = cycles_at(board, step_ns) - board->cycles;
        spend(board, cycles, cycles * board->fj_per_cycle);
        now_ns = time_at(board, board->cycles);
    }
    if (board->core_state != CORE_UNPOWERED && now_ns >= board->options.brown_out_ns) {
        board->stop = STOP_BROWN_OUT;
        set_core_state(board, CORE_UNPOWERED);
    }
}

EXPORT void board_set_inputs(struct board *board, uint32_t levels) { board->lines_in = levels; }

/* Scalars since reset; the order stands in worker.py. */
EXPORT void board_read_state(const struct board *board, uint64_t *out) {
    uint64_t now_ns = time_at(board, board->cycles);
    uint64_t throttled_ns = board->throttled_since_ns > now_ns ? 0 : now_ns - board->throttled_since_ns;
    uint64_t values[] = {
        now_ns, board->cycles, true_fj(board, board->raw_fj), board->row_count, board->rows_saturated, board->stop,
        board->core_state, board->edge_count, board->edges_lost, throttled_ns, board->stop_edge.time_ns,
        board->stop_edge.line, board->stop_edge.level, board->scout.runs, board->scout.overflowed,
    };
    memcpy(out, values, sizeof values);
}

EXPORT void board_read_edges(const struct board *board, struct edge *out) {
    memcpy(out, board->edges, board->edge_count * sizeof *out);
}

/* Per scope (the gap first): gate energy fJ, gate cycles, gate entries, entries since reset, instructions issued,
 * blocks executed, executions of blocks whose traffic was seen to vary. */
EXPORT void board_read_accounts(struct board *board, uint64_t *out) {
    close_span(board, board->cycles, board->raw_fj);
    for (uint32_t scope = 0; scope <= board->layer_count; scope++, out += 7) {
        const struct account *account = &board->accounts[scope];
        uint64_t values[7] = {account->gate_fj, account->gate_cycles, account->gate_entries, account->entries, 0, 0, 0};
        for (uint32_t k = 0; board->tables[scope] && k < board->code_b / 2; k++) {
            const struct block *block = board->tables[scope][k];
            if (!block) continue;
            values[4] += block->executions * block->instructions;
            values[5] += block->executions;
            values[6] += block->varying ? block->executions : 0;
        }
        memcpy(out, values, sizeof values);
    }
}
