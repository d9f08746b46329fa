/* What the emulator calls: before each block, and for each access to a peripheral. */
#include "board.h"

enum {
    GPIO_OUT = 0x2000, GPIO_IN = 0x2004, DIAG_ENABLE = 0x4000, WAKE_AFTER_US = 0x5000,
    FAULT_SELECT = 0x6000, FAULT_ARGUMENT = 0x6004, /* offsets from 0x40000000 */
    DWT_CTRL = 0x1000, DWT_CYCCNT = 0x1004          /* offsets from 0xE0000000 */
};
enum { DWT_NUMCOMP_4 = 0x40000000, AUDIT_MEAN_ROWS = 4096, LOOK_MEAN_EXECUTIONS = 128 };

/* A number from mean / 2 to 3 mean / 2: pseudo-random, so that looks never walk in step with a loop, and the same in
 * every run. */
static uint64_t draw_interval(struct board *board, uint64_t mean) {
    board->random_state = board->random_state * 6364136223846793005u + 1442695040888963407u;
    return mean / 2 + (board->random_state >> 33) % mean;
}

static int stop_is_due(const struct board *board) {
    return board->stop != STOP_NONE || time_at(board, board->cycles) >= board->limit_ns;
}

static void halt(struct board *board, void *uc) {
    if (board->stop == STOP_NONE) {
        if (board->limit_ns == board->options.brown_out_ns) board->stop = STOP_BROWN_OUT;
        else board->stop = board->limit_ns == board->options.deadline_ns ? STOP_DEADLINE : STOP_PAUSE;
        if (board->stop == STOP_BROWN_OUT) set_core_state(board, CORE_UNPOWERED);
    }
    board->next_event = 0;
    board->emulator.stop(uc);
}

/* A conditional return reads its registers only when it returns. Which way it went is known by the next block. */
static void arm_tail(struct board *board, uint64_t address, const struct block *block) {
    if (!block->tail_b || board->options.pricing != PRICE_BY_SCOUT) return;
    board->tail_phase = TAIL_ARMED;
    board->tail_next = (uint32_t)address + block->size_b;
    board->tail_fj = (uint64_t)block->tail_b * board->coefficients.traffic_fj_per_b[TRAFFIC_RAM_READ];
    board->next_event = 0; /* this block and the next take the slow path */
}

static void settle_tail(struct board *board, uint64_t address) {
    if (board->tail_phase != TAIL_PENDING) return;
    if (address != board->tail_next) board->raw_fj += board->tail_fj;
    board->tail_phase = TAIL_NONE;
}

/* The slow path of a block that reaches an event; 0 when the core stops before it, so that it is not counted twice. */
static int pass_event(struct board *board, void *uc, uint64_t address, struct block *block) {
    if (stop_is_due(board)) {
        halt(board, uc);
        return 0;
    }
    settle_tail(board, address);
    if (time_at(board, board->cycles) >= board->options.throttle_ns) start_throttle(board);
    uint64_t rows_before = board->row_count;
    spread_over_rows(board, block->cycles, block->energy_fj + (uint64_t)block->cycles * board->fj_per_cycle);
    plan_next_event(board);
    if (board->tail_phase == TAIL_ARMED) {
        board->tail_phase = TAIL_PENDING;
        board->next_event = 0;
    }
    uint64_t passed = board->row_count - rows_before;
    if (passed >= board->audit_in_rows) {
        block->size_b = 0;
        board->audit_in_rows = draw_interval(board, AUDIT_MEAN_ROWS);
    } else {
        board->audit_in_rows -= passed;
    }
    return 1;
}

/* Decodes a block at its first sight in this scope, or looks at its traffic again; NULL when the core stops first. */
static __attribute__((noinline)) struct block *learn_block(struct board *board, void *uc, uint32_t address,
                                                            uint32_t size_b) {
    if (stop_is_due(board)) {
        halt(board, uc);
        return NULL;
    }
    struct block *block = board->table[address >> 1];
    if (!block) {
        block = board->table[address >> 1] = new_block(board);
        block->mark = board->marks[address >> 1];
    }
    decode_block(board, address, size_b, block);
    if (block->mark == MARK_NONE && (block->tail_b || block->wavers)) block->mark = MARK_CONDITIONAL;
    price_block(board, uc, address, block);
    return block;
}

/* Finds the block; NULL when the core stops before it. A mark may change the scope, and with it the table. */
static inline struct block *find_block(struct board *board, void *uc, uint64_t address, uint32_t size_b) {
    struct block *block = board->table[address >> 1];
    if (UNLIKELY(!block || block->size_b != size_b)) block = learn_block(board, uc, (uint32_t)address, size_b);
    return block;
}

/* A block with other conditional accesses is looked at often at first, then about every hundredth time. */
static void look_again(struct board *board, void *uc, uint64_t address, struct block *block) {
    if (!block->wavers || block->executions < block->next_look) return;
    uint64_t seen = block->executions;
    block->next_look = seen + (seen < LOOK_MEAN_EXECUTIONS ? seen / 8 + 1 : draw_interval(board, LOOK_MEAN_EXECUTIONS));
    price_block(board, uc, (uint32_t)address, block);
}

static __attribute__((noinline)) struct block *cross_mark(struct board *board, void *uc, uint64_t address,
                                                           struct block *block) {
    if (stop_is_due(board)) {
        halt(board, uc);
        return NULL;
    }
    settle_tail(board, address);
    if (block->mark == MARK_CONDITIONAL) {
        look_again(board, uc, address, block);
        arm_tail(board, address, block);
        return block;
    }
    uint32_t size_b = block->size_b;
    if (!follow_mark(board, uc, block->mark, (uint32_t)address)) return block;
    return find_block(board, uc, address, size_b);
}

/* Code that no function symbol covers: decoded afresh each time. */
static __attribute__((noinline)) struct block *foreign_block(struct board *board, uint64_t address, uint32_t size_b) {
    board->foreign = (struct block){0};
    decode_block(board, (uint32_t)address, size_b, &board->foreign);
    return &board->foreign;
}

EXPORT void board_on_block(void *uc, uint64_t address, uint32_t size_b, void *user) {
    struct board *board = user;
    struct block *block;
    if (LIKELY(address < board->code_b)) {
        block = find_block(board, uc, address, size_b);
        if (block && UNLIKELY(block->mark != MARK_NONE)) block = cross_mark(board, uc, address, block);
        if (UNLIKELY(!block)) return;
    } else {
        block = foreign_block(board, address, size_b);
    }
    uint64_t cycles = board->cycles + block->cycles;
    if (UNLIKELY(cycles >= board->next_event) && !pass_event(board, uc, address, block)) return;
    block->executions++;
    board->block_start_cycles = board->cycles;
    board->block_start_raw_fj = board->raw_fj;
    board->cycles += block->cycles;
    board->raw_fj += block->energy_fj + (uint64_t)block->cycles * board->fj_per_cycle;
}

static void move_line(struct board *board, uint32_t line, uint32_t level) {
    struct edge edge = {time_at(board, board->block_start_cycles), line, level};
    if (board->edge_count < MAX_EDGES) board->edges[board->edge_count++] = edge;
    else board->edges_lost++;
    if (line & board->wanted && board->stop == STOP_NONE) {
        board->stop = STOP_EDGE;
        board->stop_edge = edge;
        board->next_event = 0;
    }
}

/* An accessor is a leaf function, so its block begins at its entry: the edge stands at the cycle before that block. */
static void write_lines(struct board *board, uint32_t levels) {
    uint32_t changed = (board->lines_out ^ levels) & (LINE_READY | LINE_GATE);
    if (!changed) return;
    close_span(board, board->block_start_cycles, board->block_start_raw_fj);
    board->lines_out = levels & (LINE_READY | LINE_GATE);
    if (changed & LINE_GATE) move_line(board, LINE_GATE, (levels & LINE_GATE) != 0);
    if (changed & LINE_READY) move_line(board, LINE_READY, (levels & LINE_READY) != 0);
}

EXPORT uint64_t board_on_mmio_read(void *uc, uint64_t offset, unsigned size_b, void *user) {
    const struct board *board = user;
    (void)uc;
    (void)size_b;
    switch (offset) {
        case GPIO_OUT: return board->lines_out;
        case GPIO_IN: return board->lines_in;
        case DIAG_ENABLE: return board->peripherals;
        case FAULT_SELECT: return board->options.fault_select;
        case FAULT_ARGUMENT: return board->options.fault_argument;
        default: return 0;
    }
}

EXPORT void board_on_mmio_write(void *uc, uint64_t offset, unsigned size_b, uint64_t value, void *user) {
    struct board *board = user;
    (void)uc;
    (void)size_b;
    if (offset == GPIO_OUT) write_lines(board, (uint32_t)value);
    if (offset == DIAG_ENABLE) {
        board->peripherals = (uint32_t)value;
        set_base_draw(board);
    }
    if (offset == WAKE_AFTER_US)
        board->wake_ns = value ? time_at(board, board->block_start_cycles) + value * 1000 : 0;
}

static uint32_t cycle_counter(const struct board *board) {
    if (!board->cycle_counter_on) return board->cycle_counter_held;
    return (uint32_t)board->block_start_cycles + board->cycle_counter_offset;
}

static void set_cycle_counter(struct board *board, uint32_t value) {
    board->cycle_counter_held = value;
    board->cycle_counter_offset = value - (uint32_t)board->block_start_cycles;
}

EXPORT uint64_t board_on_ppb_read(void *uc, uint64_t offset, unsigned size_b, void *user) {
    const struct board *board = user;
    (void)uc;
    (void)size_b;
    if (offset == DWT_CYCCNT) return cycle_counter(board);
    return offset == DWT_CTRL ? DWT_NUMCOMP_4 | board->cycle_counter_on : 0;
}

EXPORT void board_on_ppb_write(void *uc, uint64_t offset, unsigned size_b, uint64_t value, void *user) {
    struct board *board = user;
    (void)uc;
    (void)size_b;
    if (offset == DWT_CYCCNT) set_cycle_counter(board, (uint32_t)value);
    if (offset == DWT_CTRL) {
        uint32_t now = cycle_counter(board);
        board->cycle_counter_on = value & 1;
        set_cycle_counter(board, now);
    }
}
