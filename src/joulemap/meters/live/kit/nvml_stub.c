/* A stand-in for NVIDIA's management library: the part of its C interface that joulemap reads, on made-up devices.
 *
 * What it shows is read from the file named by the environment variable JOULEMAP_NVML_STUB, one line per device of
 * words KEY=VALUE: uuid, name, arch, energy (1 or 0), instant (1 or 0), average, power (1 or 0), mig (uuid of a slice,
 * repeatable), mw (power), limit (highest limit, mW), enforced (limit that holds, mW), reasons, util, mutil, clock,
 * temp, lost (1 or 0). Energy grows with the monotonic clock at the stated power. The file is read anew at every call,
 * so a test can change it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OK 0
#define BAD_ARGUMENT 2
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define NO_DRIVER 9
#define LOST 15
#define DEVICES 8
#define SLICES 8

typedef struct {
    char uuid[96], name[96], slice[SLICES][96];
    int slices, arch, energy, instant, average, power, lost;
    unsigned mw, limit, enforced, util, mutil, clock, temp;
    unsigned long long reasons;
} Device;

typedef struct {
    unsigned field_id, scope_id;
    long long timestamp, latency_us;
    unsigned kind, result;
    union { double f64; unsigned u32; unsigned long long u64; long long i64; } number;
} FieldValue;

typedef struct { unsigned gpu, memory; } Utilisation;

static Device devices[DEVICES];
static int count;

static void take(Device *d, const char *key, const char *value) {
    unsigned long long n = strtoull(value, NULL, 0);
    if (!strcmp(key, "uuid")) snprintf(d->uuid, sizeof d->uuid, "%s", value);
    else if (!strcmp(key, "name")) {
        snprintf(d->name, sizeof d->name, "%s", value);
        for (char *c = d->name; *c; c++) if (*c == '_') *c = ' ';
    }
    else if (!strcmp(key, "mig") && d->slices < SLICES) snprintf(d->slice[d->slices++], 96, "%s", value);
    else if (!strcmp(key, "arch")) d->arch = (int)n;
    else if (!strcmp(key, "energy")) d->energy = (int)n;
    else if (!strcmp(key, "instant")) d->instant = (int)n;
    else if (!strcmp(key, "average")) d->average = (int)n;
    else if (!strcmp(key, "power")) d->power = (int)n;
    else if (!strcmp(key, "lost")) d->lost = (int)n;
    else if (!strcmp(key, "mw")) d->mw = (unsigned)n;
    else if (!strcmp(key, "limit")) d->limit = (unsigned)n;
    else if (!strcmp(key, "enforced")) d->enforced = (unsigned)n;
    else if (!strcmp(key, "util")) d->util = (unsigned)n;
    else if (!strcmp(key, "mutil")) d->mutil = (unsigned)n;
    else if (!strcmp(key, "clock")) d->clock = (unsigned)n;
    else if (!strcmp(key, "temp")) d->temp = (unsigned)n;
    else if (!strcmp(key, "reasons")) d->reasons = n;
}

static int load(void) {
    const char *path = getenv("JOULEMAP_NVML_STUB");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[1024];
    if (!file) return NO_DRIVER;
    count = 0;
    memset(devices, 0, sizeof devices);
    while (count < DEVICES && fgets(line, sizeof line, file)) {
        Device *d = &devices[count];
        int words = 0;
        d->power = 1;
        for (char *word = strtok(line, " \t\r\n"); word; word = strtok(NULL, " \t\r\n")) {
            char *equals = strchr(word, '=');
            if (!equals) continue;
            *equals = 0;
            take(d, word, equals + 1);
            words++;
        }
        if (words) count++;
    }
    fclose(file);
    return OK;
}

/* A handle is 1 + index of the device, plus 100 * (1 + slice) for a slice. */
static Device *device_of(void *handle, int *code) {
    size_t index = ((size_t)handle - 1) % 100;
    *code = load();
    if (*code != OK) return NULL;
    if (!handle || index >= (size_t)count) { *code = BAD_ARGUMENT; return NULL; }
    if (devices[index].lost) { *code = LOST; return NULL; }
    return &devices[index];
}

static int whole(void *handle) { return (size_t)handle < 100; }

static unsigned long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000 + (unsigned long long)t.tv_nsec / 1000000;
}

#define FIND(handle) int code; Device *d = device_of(handle, &code); if (!d) return code

int nvmlInit_v2(void) { return load(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return load(); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case OK: return "Success";
    case BAD_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case NO_DRIVER: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

int nvmlDeviceGetCount_v2(unsigned *n) { int code = load(); *n = (unsigned)count; return code; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    int code = load();
    if (code != OK) return code;
    if (index >= (unsigned)count) return BAD_ARGUMENT;
    if (devices[index].lost) return LOST;
    *handle = (void *)(size_t)(index + 1);
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    int code = load();
    if (code != OK) return code;
    for (int i = 0; i < count; i++) {
        if (!strcmp(uuid, devices[i].uuid)) { *handle = (void *)(size_t)(i + 1); return OK; }
        for (int s = 0; s < devices[i].slices; s++)
            if (!strcmp(uuid, devices[i].slice[s])) { *handle = (void *)(size_t)(i + 1 + 100 * (s + 1)); return OK; }
    }
    return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *slice, void **handle) {
    if (whole(slice)) return BAD_ARGUMENT;
    *handle = (void *)(((size_t)slice - 1) % 100 + 1);
    return OK;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned length) {
    FIND(handle);
    snprintf(text, length, "%s", whole(handle) ? d->uuid : d->slice[((size_t)handle - 1) / 100 - 1]);
    return OK;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned length) {
    FIND(handle);
    snprintf(text, length, "%s", d->name);
    return OK;
}

int nvmlDeviceGetArchitecture(void *handle, unsigned *n) {
    FIND(handle);
    *n = (unsigned)d->arch;
    return d->arch ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
    FIND(handle);
    *current = *pending = d->slices > 0;
    return d->arch >= 7 ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *mj) {
    FIND(handle);
    if (!d->energy || !whole(handle)) return NOT_SUPPORTED;
    *mj = now_ms() * d->mw / 1000;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *mw) {
    FIND(handle);
    if (!d->power || !whole(handle)) return NOT_SUPPORTED;
    *mw = d->mw;
    return OK;
}

int nvmlDeviceGetFieldValues(void *handle, int n, FieldValue *values) {
    FIND(handle);
    for (int i = 0; i < n; i++) {
        FieldValue *v = &values[i];
        int has = (v->field_id == 186 && d->instant) || (v->field_id == 185 && d->average);
        v->result = has ? OK : NOT_SUPPORTED;
        v->kind = 1;
        v->number.u64 = 0;
        v->number.u32 = d->mw;
    }
    return OK;
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *least, unsigned *highest) {
    FIND(handle);
    *least = d->limit / 4;
    *highest = d->limit;
    return d->limit ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *mw) {
    FIND(handle);
    *mw = d->enforced;
    return d->enforced ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(void *handle, Utilisation *rates) {
    FIND(handle);
    if (d->slices) return NOT_SUPPORTED;
    rates->gpu = d->util;
    rates->memory = d->mutil;
    return OK;
}

int nvmlDeviceGetClockInfo(void *handle, unsigned kind, unsigned *mhz) {
    FIND(handle);
    *mhz = d->clock;
    return kind == 1 && d->clock ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *degc) {
    FIND(handle);
    *degc = d->temp;
    return sensor == 0 && d->temp ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons) {
    FIND(handle);
    *reasons = d->reasons;
    return OK;
}

#ifndef JOULEMAP_UNMARKED
/* The mark by which a reader knows that nothing here is measured. */
int joulemapNothingIsMeasured(void) {
    return 1;
}
#endif
