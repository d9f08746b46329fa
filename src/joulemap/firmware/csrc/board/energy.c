/* Time, energy rows and the spans that truth is made of. Integer arithmetic: the rows and the rest add up exactly. */
#include "board.h"

static uint64_t scaled(uint64_t value, uint64_t factor) {
    return (uint64_t)(((unsigned __int128)value * factor) >> 32);
}

uint64_t time_at(const struct board *board, uint64_t cycles) {
    return board->base_ns + (cycles - board->base_cycles) * board->period_ns;
}

/* First cycle at or after the instant. */
uint64_t cycles_at(const struct board *board, uint64_t time_ns) {
    if (time_ns == NEVER) return NEVER;
    if (time_ns <= board->base_ns) return board->base_cycles;
    return board->base_cycles + (time_ns - board->base_ns + board->period_ns - 1) / board->period_ns;
}

uint64_t true_fj(const struct board *board, uint64_t raw_fj) {
    return board->factor_true_fj + scaled(raw_fj - board->factor_raw_fj, board->factor);
}

static uint64_t rail_fj(const struct board *board, uint64_t raw_fj) {
    return scaled(true_fj(board, raw_fj), board->options.run_factor);
}

static uint32_t peripheral_draw_uw(const struct board *board) {
    uint32_t draw_uw = 0;
    for (int k = 0; k < PERIPHERAL_COUNT; k++)
        if (board->peripherals >> k & 1) draw_uw += board->coefficients.peripheral_uw[k];
    return draw_uw;
}

/* What each cycle costs in the core's present state, whatever it executes. */
void set_base_draw(struct board *board) {
    const struct coefficients *cost = &board->coefficients;
    int asleep = board->core_state == CORE_ASLEEP;
    uint32_t steady_uw = (asleep ? cost->sleep_static_uw : cost->static_uw) + peripheral_draw_uw(board);
    uint32_t clock_fj = asleep ? cost->sleep_clock_fj_per_cycle : cost->clock_fj_per_cycle;
    board->fj_per_cycle = steady_uw * (uint32_t)board->period_ns + clock_fj;
    if (board->core_state == CORE_UNPOWERED) board->fj_per_cycle = 0;
}

static void store_row(struct board *board, uint64_t rail) {
    uint64_t row_fj = rail - board->row_start_rail_fj;
    if (row_fj > UINT32_MAX) {
        row_fj = UINT32_MAX;
        board->rows_saturated++;
    }
    if (board->row_count < board->options.row_capacity) board->options.rows[board->row_count++] = (uint32_t)row_fj;
    board->row_start_rail_fj = rail;
}

/* value * part / whole, rounded down; a division of 128 bits only where 64 do not hold the product. */
static uint64_t share_of(uint64_t value, uint64_t part, uint64_t whole) {
    if (LIKELY(value <= UINT32_MAX && part <= UINT32_MAX)) return value * part / whole;
    return (uint64_t)((unsigned __int128)value * part / whole);
}

/* Ends every row that the next `cycles` reach; what crosses a boundary is split pro rata by time. */
void spread_over_rows(struct board *board, uint64_t cycles, uint64_t raw_fj) {
    uint64_t start_ns = time_at(board, board->cycles);
    uint64_t span_ns = cycles * board->period_ns;
    while (board->row_next_ns <= start_ns + span_ns) {
        uint64_t part_ns = board->row_next_ns - start_ns;
        uint64_t part_fj = share_of(raw_fj, part_ns, span_ns);
        store_row(board, rail_fj(board, board->raw_fj + part_fj));
        board->row_next_ns += board->options.row_ns;
    }
}

/* Lets cycles pass outside of any block. */
void spend(struct board *board, uint64_t cycles, uint64_t raw_fj) {
    if (!cycles) return;
    spread_over_rows(board, cycles, raw_fj);
    board->cycles += cycles;
    board->raw_fj += raw_fj;
    plan_next_event(board);
}

void plan_next_event(struct board *board) {
    uint64_t next_ns = board->row_next_ns;
    if (board->limit_ns < next_ns) next_ns = board->limit_ns;
    if (board->options.throttle_ns < next_ns) next_ns = board->options.throttle_ns;
    board->next_event = board->stop != STOP_NONE || board->tail_phase == TAIL_PENDING ? 0 : cycles_at(board, next_ns);
}

/* Credits what happened since the last call to the present scope, if GATE was high. */
void close_span(struct board *board, uint64_t cycles, uint64_t raw_fj) {
    uint64_t now_fj = true_fj(board, raw_fj);
    if (board->lines_out & LINE_GATE) {
        board->accounts[board->scope].gate_fj += now_fj - board->span_true_fj;
        board->accounts[board->scope].gate_cycles += cycles - board->span_cycles;
    }
    board->span_true_fj = now_fj;
    board->span_cycles = cycles;
}

/* From now on a cycle takes longer; what was counted so far keeps its time. */
void start_throttle(struct board *board) {
    uint64_t now_ns = time_at(board, board->cycles);
    board->throttled_since_ns = now_ns;
    board->base_ns = now_ns;
    board->base_cycles = board->cycles;
    board->period_ns = board->coefficients.throttled_period_ns;
    board->options.throttle_ns = NEVER;
    set_base_draw(board);
}

/* A core without power stays so until reset. */
void set_core_state(struct board *board, uint32_t state) {
    if (board->core_state == CORE_UNPOWERED || board->core_state == state) return;
    board->core_state = state;
    set_base_draw(board);
}
