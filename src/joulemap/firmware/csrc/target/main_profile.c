/* hpx_profiler: cycles of one inference and of each layer, printed over RTT. Copyright joulemap contributors,
 * Apache-2.0. */
#include "hpx_crc.h"
#include "hpx_line.h"
#include "hpx_loop.h"
#include "hpx_model.h"
#include "hpx_port.h"
#include "hpx_rtt.h"
#include "hpx_wire.h"

#if !defined(HPX_LAYERS) || !defined(HPX_WARMUP_PASSES) || !defined(HPX_CLEAN_PASSES) || !defined(HPX_MARKED_PASSES)
#error "the build must define HPX_LAYERS, HPX_WARMUP_PASSES, HPX_CLEAN_PASSES and HPX_MARKED_PASSES"
#endif
_Static_assert(HPX_CLEAN_PASSES <= HPX_LOOP_KEPT, "the loop keeps too few passes");

enum { EMPTY_LAYERS = 4 };
enum { AT_START = 0, AFTER_HEAD = 1, AFTER_LAYER = 2 }; /* places in a row of marks */

static uint32_t marks[HPX_MARKED_PASSES][AFTER_LAYER + HPX_LAYERS];
static uint32_t stream_crc;
static uint32_t stream_lines;

/* Naked: a compiler's frame would be timed as if it were the mark. The second one returns by one more branch; the
 * difference is what a return costs, which belongs to a layer and not to the mark. */
__attribute__((naked, noinline, used)) static void hpx_empty_layer(void)
{
    __asm volatile("bx lr");
}
__attribute__((naked, noinline, used)) static void hpx_empty_layer_two_branches(void)
{
    __asm volatile("b 1f\n .p2align 2\n 1: bx lr");
}
static const hpx_layer_fn empty_layers[EMPTY_LAYERS] = {hpx_empty_layer, hpx_empty_layer, hpx_empty_layer,
                                                        hpx_empty_layer};
static const hpx_layer_fn two_branch_layers[EMPTY_LAYERS] = {
    hpx_empty_layer_two_branches, hpx_empty_layer_two_branches, hpx_empty_layer_two_branches,
    hpx_empty_layer_two_branches};

/* One marked pass: the same loop for the model and for the empty layers, so that both carry the same mark. */
__attribute__((noinline)) static void hpx_marked_pass(uint32_t *mark, hpx_layer_fn head, const hpx_layer_fn *layers,
                                                      uint32_t count)
{
    mark[AT_START] = hpx_mmio_cyccnt();
    head();
    mark[AFTER_HEAD] = hpx_mmio_cyccnt();
    for (uint32_t k = 0u; k < count; k++) {
        layers[k]();
        mark[AFTER_LAYER + k] = hpx_mmio_cyccnt();
    }
}

static void print(struct hpx_text *text)
{
    stream_lines++;
    if (hpx_fault(HPX_FAULT_PROFILE_TRUNCATED) && stream_lines > 12u) {
        return;
    }
    stream_crc = hpx_crc32(stream_crc, text->bytes, text->size);
    if (hpx_fault(HPX_FAULT_PROFILE_CORRUPT) && stream_lines == 12u) {
        text->bytes[text->size - 2u] ^= 1; /* a bit lost on the link, after the checksum was taken */
    }
    hpx_rtt_write(text->bytes, text->size);
}

static void print_value(const char *key, uint32_t i, uint32_t j, uint64_t value)
{
    char bytes[HPX_LINE_MAX];
    struct hpx_text text = {.bytes = bytes, .capacity = sizeof bytes, .size = 0u};
    hpx_text_line(&text, key, i, j, value);
    print(&text);
}

static void print_fact(const char *key, uint64_t value)
{
    print_value(key, HPX_NO_INDEX, HPX_NO_INDEX, value);
}

static void print_start(uint32_t init_code)
{
    char bytes[HPX_LINE_MAX];
    struct hpx_text text = {.bytes = bytes, .capacity = sizeof bytes, .size = 0u};
    hpx_text_start(&text, HPX_PROFILE_START, HPX_PROTOCOL_VERSION);
    print(&text);
    print_fact(HPX_KEY_CORE_HZ, HPX_CORE_HZ);
    print_fact(HPX_KEY_LAYERS, hpx_layer_count);
    print_fact(HPX_KEY_WARMUP_PASSES, HPX_WARMUP_PASSES);
    print_fact(HPX_KEY_CLEAN_PASSES, HPX_CLEAN_PASSES);
    print_fact(HPX_KEY_INSTRUMENTED_PASSES, HPX_MARKED_PASSES);
    print_fact(HPX_KEY_INIT_CODE, init_code);
}

static void print_end(void)
{
    char bytes[HPX_LINE_MAX];
    struct hpx_text text = {.bytes = bytes, .capacity = sizeof bytes, .size = 0u};
    print_fact(HPX_KEY_STREAM_CRC32, stream_crc);
    hpx_text_word(&text, HPX_PROFILE_END "\n");
    print(&text);
}

static void calibrate_marks(void)
{
    /* Through volatile pointers: the compiler must not make a loop of its own for empty layers. */
    const hpx_layer_fn *volatile plain = empty_layers;
    const hpx_layer_fn *volatile two_branches = two_branch_layers;
    uint32_t row[AFTER_LAYER + EMPTY_LAYERS];
    uint32_t mark;
    uint32_t head_mark;
    hpx_marked_pass(row, plain[0], plain, EMPTY_LAYERS);
    mark = row[AFTER_LAYER + 2] - row[AFTER_LAYER + 1];
    head_mark = row[AFTER_HEAD] - row[AT_START];
    hpx_marked_pass(row, two_branches[0], two_branches, EMPTY_LAYERS);
    print_fact(HPX_KEY_MARK_CYCLES, mark);
    print_fact(HPX_KEY_HEAD_MARK_CYCLES, head_mark);
    print_fact(HPX_KEY_RETURN_CYCLES, row[AFTER_LAYER + 2] - row[AFTER_LAYER + 1] - mark);
}

static void run_passes(void)
{
    hpx_loop_start();
    (void)hpx_loop_run(HPX_WARMUP_PASSES);
    hpx_loop_start();
    (void)hpx_loop_run(HPX_CLEAN_PASSES);
    for (uint32_t p = 0u; p < HPX_MARKED_PASSES; p++) {
        hpx_marked_pass(marks[p], hpx_model_load_input, hpx_layers, HPX_LAYERS);
    }
    if (hpx_fault(HPX_FAULT_COUNTER_OVERFLOW)) {
        /* As if input load and first layer of the first pass had taken three quarters of the counter's range each. */
        for (uint32_t k = AFTER_HEAD; k < AFTER_LAYER + HPX_LAYERS; k++) {
            marks[0][k] += k == AFTER_HEAD ? 0xC0000000u : 0x80000000u;
        }
    }
}

static void print_pass(uint32_t p)
{
    uint64_t parts = 0u;
    for (uint32_t k = AFTER_HEAD; k < AFTER_LAYER + HPX_LAYERS; k++) {
        parts += (uint32_t)(marks[p][k] - marks[p][k - 1u]);
    }
    print_value(HPX_KEY_INSTRUMENTED_CYCLES, p, HPX_NO_INDEX,
                (uint32_t)(marks[p][AFTER_LAYER + HPX_LAYERS - 1u] - marks[p][AT_START]));
    print_value(HPX_KEY_HEAD_CYCLES, p, HPX_NO_INDEX, (uint32_t)(marks[p][AFTER_HEAD] - marks[p][AT_START]));
    for (uint32_t k = 0u; k < HPX_LAYERS; k++) {
        print_value(HPX_KEY_LAYER_CYCLES, p, k,
                    (uint32_t)(marks[p][AFTER_LAYER + k] - marks[p][AFTER_LAYER + k - 1u]));
    }
    print_value(HPX_KEY_OVERFLOW, p, HPX_NO_INDEX, parts > UINT32_MAX ? 1u : 0u);
}

int main(void)
{
    uint32_t init_code;
    hpx_phase = HPX_PHASE_BOOT;
    hpx_port_init();
    hpx_port_diagnostics(HPX_DIAG_DEBUG);
    hpx_rtt_init();
    hpx_phase = HPX_PHASE_MODEL_INIT;
    init_code = (uint32_t)hpx_model_init();
    print_start(init_code);
    if (init_code == HPX_ERROR_NONE && hpx_layer_count == HPX_LAYERS) {
        hpx_phase = HPX_PHASE_RUN_FIXED_N;
        calibrate_marks();
        run_passes();
        hpx_phase = HPX_PHASE_TERMINAL_REPORT;
        for (uint32_t p = 0u; p < HPX_CLEAN_PASSES; p++) {
            print_value(HPX_KEY_CLEAN_CYCLES, p, HPX_NO_INDEX, hpx_loop.pass_cycles[p]);
        }
        for (uint32_t p = 0u; p < HPX_MARKED_PASSES; p++) {
            print_pass(p);
        }
        print_fact(HPX_KEY_OUTPUT_CRC32, hpx_model_output_crc32());
    }
    print_end();
    hpx_phase = HPX_PHASE_PARK;
    for (;;) {
        hpx_port_wait();
    }
}
