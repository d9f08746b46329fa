/* The scout: a second emulator on the same RAM that executes one block under memory hooks, so that the block is priced
 * by the bytes it really moves. Its writes are undone before the first emulator executes the block itself.
 */
#include <string.h>

#include "board.h"

enum { MEMORY_READ = 16 }; /* access type of the emulator's memory hook */

static enum traffic traffic_of(uint64_t address, int is_read) {
    uint64_t area = address >> 28;
    if (area == 0) return TRAFFIC_FLASH_READ;
    if (area == 2) return is_read ? TRAFFIC_RAM_READ : TRAFFIC_RAM_WRITE;
    return TRAFFIC_MMIO;
}

/* Emulator hook: the scout stops when it leaves the block. With memory hooks the emulator cuts long straight code into
 * several of its own blocks, so what goes on at the next address of the block still belongs to it. */
EXPORT void board_on_scout_block(void *uc, uint64_t address, uint32_t size_b, void *user) {
    struct board *board = user;
    struct scout *scout = &board->scout;
    scout->inside = address == scout->expected && address < scout->end;
    scout->expected = address + size_b;
    if (scout->inside) return;
    scout->exit = address;
    board->emulator.stop(uc);
}

static void save_write(struct board *board, uint64_t address, uint32_t size_b) {
    struct scout *scout = &board->scout;
    uint64_t offset = address - RAM_BASE;
    if (address < RAM_BASE || offset + size_b > board->ram_b || size_b > sizeof scout->writes[0].before) return;
    if (scout->saved == MAX_SAVED_WRITES) {
        scout->overflowed = 1;
        return;
    }
    struct saved_write *saved = &scout->writes[scout->saved++];
    *saved = (struct saved_write){(uint32_t)offset, size_b, {0}};
    memcpy(saved->before, board->ram + offset, size_b);
}

/* Emulator hook: counts an access of the scout and keeps what a write is about to overwrite. */
EXPORT void board_on_scout_access(void *uc, int type, uint64_t address, int size_b, int64_t value, void *user) {
    struct board *board = user;
    (void)uc;
    (void)value;
    if (type != MEMORY_READ) save_write(board, address, (uint32_t)size_b);
    if (board->scout.inside) board->scout.seen_b[traffic_of(address, type == MEMORY_READ)] += (uint32_t)size_b;
}

/* Peripherals of the scout: they read 0 and swallow what is written, so that a line never moves twice. */
EXPORT uint64_t board_on_scout_mmio_read(void *uc, uint64_t offset, unsigned size_b, void *user) {
    (void)uc, (void)offset, (void)size_b, (void)user;
    return 0;
}
EXPORT void board_on_scout_mmio_write(void *uc, uint64_t offset, unsigned size_b, uint64_t value, void *user) {
    (void)uc, (void)offset, (void)size_b, (void)value, (void)user;
}

/* Emulator hook of PRICE_BY_HOOK: the reference that the scout is held against. */
EXPORT void board_on_access(void *uc, int type, uint64_t address, int size_b, int64_t value, void *user) {
    struct board *board = user;
    (void)uc;
    (void)value;
    uint32_t fj_per_b = board->coefficients.traffic_fj_per_b[traffic_of(address, type == MEMORY_READ)];
    board->raw_fj += (uint64_t)(uint32_t)size_b * fj_per_b;
}

static void run_scout(struct board *board, void *uc, uint32_t address, uint32_t size_b) {
    struct scout *scout = &board->scout;
    memset(scout->seen_b, 0, sizeof scout->seen_b);
    scout->inside = scout->saved = 0;
    scout->expected = address;
    scout->exit = scout->end = address + size_b;
    scout->runs++;
    board->emulator.read_registers(uc, scout->ids, scout->slots, REGISTER_COUNT);
    board->emulator.write_registers(scout->uc, scout->ids, scout->slots, REGISTER_COUNT);
    board->emulator.start(scout->uc, address | 1, 0xfffffffe, 0, 0); /* a fault here comes again in the first emulator */
    while (scout->saved) {
        const struct saved_write *saved = &scout->writes[--scout->saved];
        memcpy(board->ram + saved->offset, saved->before, saved->size_b);
    }
}

/* What the scout saw of one kind of traffic, a conditional return left out: that is charged when it returns. */
static uint32_t steady_b(const struct scout *scout, const struct block *block, int kind) {
    int returned = block->tail_b && scout->exit != scout->end;
    return scout->seen_b[kind] - (kind == TRAFFIC_RAM_READ && returned ? block->tail_b : 0);
}

/* Looks at the block's traffic once more and prices it by the mean of all looks. */
void price_block(struct board *board, void *uc, uint32_t address, struct block *block) {
    uint64_t energy_fj = block->class_fj;
    if (board->options.pricing == PRICE_BY_SCOUT && board->scout.uc) {
        run_scout(board, uc, address, block->size_b);
        block->observations++;
        for (int k = 0; k < TRAFFIC_COUNT; k++) {
            uint32_t seen_b = steady_b(&board->scout, block, k);
            if (block->observations > 1 && block->last_b[k] != seen_b) block->varying = 1;
            block->last_b[k] = seen_b;
            block->sum_b[k] += seen_b;
            energy_fj += block->sum_b[k] * board->coefficients.traffic_fj_per_b[k] / block->observations;
        }
    }
    block->energy_fj = (uint32_t)energy_fj;
}
