/* Core of the virtual board: folds executed blocks into modelled cycles, energy and truth.
 *
 * An emulator calls on_block before each block of guest code. A block is decoded once per layer, priced (cycles and
 * femtojoules), and then costs one table look-up. Everything rarer than a block (row boundaries, layer switches, lines,
 * stops) is kept out of that path.
 *
 * Three axes: `cycles` of the core, board time in ns (cycles times the clock period, which a throttle may change), and
 * `raw_fj`, the energy before a layer's factor. true_fj() maps raw to true energy; the rail is truth times run factor.
 *
 * Copyright joulemap contributors, Apache-2.0.
 */
#ifndef JOULEMAP_BOARD_H
#define JOULEMAP_BOARD_H
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NEVER UINT64_MAX

enum instruction_class {
    CLASS_ALU, CLASS_MULTIPLY, CLASS_DIVIDE, CLASS_LOAD, CLASS_STORE, CLASS_BRANCH,
    CLASS_FLOAT, CLASS_FLOAT_DIVIDE, CLASS_SYSTEM, CLASS_OTHER, CLASS_COUNT
};
enum traffic { TRAFFIC_FLASH_READ, TRAFFIC_RAM_READ, TRAFFIC_RAM_WRITE, TRAFFIC_MMIO, TRAFFIC_COUNT };
enum peripheral { PERIPHERAL_UART, PERIPHERAL_DEBUG, PERIPHERAL_SWO, PERIPHERAL_USB, PERIPHERAL_COUNT };
enum tail_phase { TAIL_NONE, TAIL_ARMED, TAIL_PENDING };
enum stop { STOP_NONE, STOP_EDGE, STOP_DEADLINE, STOP_BROWN_OUT, STOP_PAUSE };
enum core_state { CORE_AWAKE, CORE_ASLEEP, CORE_LOCKED, CORE_UNPOWERED };
enum pricing {
    PRICE_BY_SCOUT,  /* bytes per region from one execution on a second emulator */
    PRICE_BY_HOOK,   /* bytes per region added live by a memory hook: exact and slow, the reference */
    PRICE_NO_TRAFFIC
};
enum { LINE_READY = 1, LINE_GATE = 2 };
enum { RAM_BASE = 0x20000000 };

/* Coefficients, all integers: fJ, uW (1 uW is 1 fJ per ns), cycles. The same layout stands in worker.py. */
struct coefficients {
    uint32_t class_cycles[CLASS_COUNT];
    uint32_t class_fj[CLASS_COUNT];
    uint32_t traffic_fj_per_b[TRAFFIC_COUNT];
    uint32_t peripheral_uw[PERIPHERAL_COUNT];
    uint32_t static_uw;
    uint32_t clock_fj_per_cycle;
    uint32_t sleep_static_uw;
    uint32_t sleep_clock_fj_per_cycle;
    uint32_t wake_cycles;
    uint32_t period_ns;
    uint32_t throttled_period_ns;
};

/* Entry points of the emulator library. */
struct emulator {
    int (*stop)(void *uc);
    int (*start)(void *uc, uint64_t begin, uint64_t until, uint64_t timeout, size_t count);
    int (*read_registers)(void *uc, int *ids, void **values, int count);
    int (*write_registers)(void *uc, int *ids, void *const *values, int count);
};

/* How a run starts. The same layout stands in worker.py. Factors are fixed point with 32 fractional bits. */
struct run_options {
    uint32_t *rows;
    uint64_t row_capacity;
    uint64_t row_ns;
    uint64_t deadline_ns;
    uint64_t brown_out_ns;
    uint64_t throttle_ns;
    uint64_t run_factor;
    const uint64_t *layer_factors; /* NULL for none */
    uint32_t fault_select;
    uint32_t fault_argument;
    uint32_t pricing;
};

struct block {
    uint64_t executions;
    uint32_t energy_fj; /* of its classes and traffic, without what every cycle costs */
    uint32_t cycles;
    uint16_t size_b;    /* 0 asks for a new look by the scout */
    uint16_t instructions;
    uint16_t mark;
    uint16_t varying;
    uint16_t tail_b; /* bytes that a conditional return at its end reads when it returns */
    uint16_t wavers; /* another access stands under IT */
    uint64_t next_look; /* executions after which a block with conditional accesses is looked at again */
    uint32_t class_fj;
    uint32_t observations;
    uint32_t last_b[TRAFFIC_COUNT];
    uint64_t sum_b[TRAFFIC_COUNT];
};
/* Marks: 0 none, 1 + i the entry of layer i, MARK_RETURN an address that some layer returned to, MARK_CONDITIONAL a
 * block with an access under IT, which moves bytes or does not. */
enum { MARK_NONE = 0, MARK_CONDITIONAL = 0xfffe, MARK_RETURN = 0xffff, MAX_LAYERS = 0xfffd };

struct frame {
    uint32_t scope;
    uint32_t return_address;
    uint32_t return_sp;
};
/* r0 to r12, sp, lr, xpsr, d0 to d15, fpscr: what a block may read. */
enum { REGISTER_SP = 13, REGISTER_LR = 14, REGISTER_COUNT = 33 };
enum { MAX_FRAMES = 8, MAX_EDGES = 4096, MAX_SAVED_WRITES = 4096 };

struct edge {
    uint64_t time_ns;
    uint32_t line;
    uint32_t level;
};

/* What one scope (0 the gap, 1 + i layer i) did while GATE was high, and its entries since reset. */
struct account {
    uint64_t gate_fj;
    uint64_t gate_cycles;
    uint64_t gate_entries;
    uint64_t entries;
};

struct saved_write {
    uint32_t offset;
    uint32_t size_b;
    uint8_t before[8];
};

struct scout {
    void *uc; /* NULL without one */
    int ids[REGISTER_COUNT];
    void *slots[REGISTER_COUNT];
    uint64_t values[REGISTER_COUNT];
    uint64_t expected; /* where straight-line execution of the block goes on */
    uint64_t end;
    uint64_t exit; /* where execution went on after the block */
    uint32_t inside;
    uint32_t seen_b[TRAFFIC_COUNT];
    uint64_t runs;
    uint32_t saved;
    uint32_t overflowed;
    struct saved_write writes[MAX_SAVED_WRITES];
};

struct slab;

struct board {
    /* read or written by every block */
    uint64_t cycles;
    uint64_t raw_fj;
    uint64_t next_event; /* cycles at which a block must take the slow path; 0 when a stop is asked for */
    struct block **table;
    uint32_t code_b;
    uint32_t fj_per_cycle;
    uint64_t block_start_cycles;
    uint64_t block_start_raw_fj;

    /* time */
    uint64_t period_ns;
    uint64_t base_cycles;
    uint64_t base_ns;
    uint64_t limit_ns; /* the nearest of deadline, brown-out and pause */
    uint64_t pause_ns;
    uint64_t throttled_since_ns;
    uint64_t wake_ns; /* 0 when no wake-up is set */

    /* energy */
    uint64_t factor;
    uint64_t factor_raw_fj;
    uint64_t factor_true_fj;
    uint64_t row_next_ns;
    uint64_t row_count;
    uint64_t row_start_rail_fj;
    uint64_t rows_saturated;

    /* scopes */
    uint32_t scope;
    uint64_t span_cycles;
    uint64_t span_true_fj;
    struct frame frames[MAX_FRAMES];
    uint32_t frame_count;

    /* lines and registers */
    uint32_t lines_out;
    uint32_t lines_in;
    uint32_t wanted;
    uint32_t peripherals;
    uint32_t cycle_counter_offset;
    uint32_t cycle_counter_on;
    uint32_t cycle_counter_held;
    struct edge edges[MAX_EDGES];
    uint32_t edge_count;
    uint32_t edges_lost;
    uint32_t tail_phase;
    uint32_t tail_next; /* where execution goes on when the conditional return did not return */
    uint64_t tail_fj;
    uint32_t stop;
    struct edge stop_edge;
    uint32_t core_state;

    /* what stays through a reset */
    struct coefficients coefficients;
    struct emulator emulator;
    struct run_options options;
    uint8_t *image;
    uint32_t image_b;
    uint8_t *ram;
    uint32_t ram_b;
    uint32_t layer_count;
    struct account *accounts; /* one per scope; cleared by a reset */
    uint16_t *layer_marks; /* of the entries only */
    uint16_t *marks;
    struct block ***tables; /* one per scope, made when it is first entered */
    struct slab *slabs;
    struct block foreign; /* a block outside the known code */
    uint64_t random_state;
    uint64_t audit_in_rows;
    struct scout scout;
};

/* decode.c */
struct instruction {
    uint32_t size_b;
    enum instruction_class class;
    uint32_t transfers; /* registers that a load or store moves */
};
struct instruction decode_instruction(const uint8_t *code);
void decode_block(const struct board *board, uint32_t address, uint32_t size_b, struct block *block);

/* energy.c */
uint64_t time_at(const struct board *board, uint64_t cycles);
uint64_t cycles_at(const struct board *board, uint64_t time_ns);
uint64_t true_fj(const struct board *board, uint64_t raw_fj);
void set_base_draw(struct board *board);
void spend(struct board *board, uint64_t cycles, uint64_t raw_fj);
void spread_over_rows(struct board *board, uint64_t cycles, uint64_t raw_fj);
void plan_next_event(struct board *board);
void close_span(struct board *board, uint64_t cycles, uint64_t raw_fj);
void start_throttle(struct board *board);
void set_core_state(struct board *board, uint32_t state);

/* scopes.c */
void enter_scope(struct board *board, uint32_t scope);
int follow_mark(struct board *board, void *uc, uint32_t mark, uint32_t address);
struct block *new_block(struct board *board);
void drop_blocks(struct board *board);

/* scout.c */
void price_block(struct board *board, void *uc, uint32_t address, struct block *block);

#endif
