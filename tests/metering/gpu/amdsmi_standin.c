/* A stand-in for libamd_smi.so with the symbols and structures of amdsmi.h (ROCm 7.0) that we use. Only the silicon is
   made up. All other symbols, which the binding looks up as it is loaded, come from a generated file. */
#define MAKER "amd"
#include "silicon.h"

#define NOT_SUPPORTED 2
#define NOT_INIT 32
#define DRIVER_NOT_LOADED 34
#define HANDLE 0x1000

typedef struct { uint64_t socket; uint32_t current, average; uint64_t gfx, soc, mem; uint32_t limit; uint64_t reserved[18]; } PowerInfo;
typedef struct { uint64_t cap, usual, dpm, least, most, reserved[3]; } PowerCap;
typedef struct { uint32_t total, used, reserved[2]; } Vram;
typedef struct { uint32_t gfx, umc, mm, reserved[13]; } Engine;
typedef struct { uint32_t render, card, hsa, hip; char uuid[256]; } Enumeration;
typedef struct { uint32_t major, minor, release; const char *build; } Version;
typedef struct {
    char market[256]; uint32_t vendor; char vendor_name[256]; uint32_t subvendor; uint64_t device; uint32_t revision;
    char serial[256]; uint32_t oam, units; uint64_t graphics; uint32_t subsystem, reserved[21];
} Asic;
typedef struct {
    char name[256]; uint32_t pid; uint64_t mem;
    struct { uint64_t gfx, enc; uint32_t reserved[12]; } engine;
    struct { uint64_t gtt, cpu, vram; uint32_t reserved[10]; } memory;
    char container[256]; uint32_t held, reserved[11];
} ProcInfo;

static int opened = 0;

static int device(void *handle, Silicon *it, Device **found) {
    uintptr_t number = (uintptr_t)handle - HANDLE;
    int code = silicon(it, DRIVER_NOT_LOADED);
    if (!opened) return NOT_INIT;
    if (code) return code;
    if (number >= (uintptr_t)it->devices) return 1;
    *found = &it->device[number];
    return (*found)->handle_rc;
}

int amdsmi_init(uint64_t flags) {
    Silicon it;
    int code = silicon(&it, DRIVER_NOT_LOADED);
    if (!code) opened++;
    return code;
}

int amdsmi_shut_down(void) {
    if (!opened) return NOT_INIT;
    opened--;
    return 0;
}

int amdsmi_get_lib_version(Version *version) {
    Silicon it;
    silicon(&it, 0);
    *version = (Version){it.major, 0, 2, "stand-in"};
    return 0;
}

/* Every device is alone in its socket; so a socket's handle is its device's. */
int amdsmi_get_socket_handles(uint32_t *count, void **handles) {
    Silicon it;
    int code = silicon(&it, DRIVER_NOT_LOADED);
    if (!opened) return NOT_INIT;
    if (code) return code;
    if (handles) for (uint32_t i = 0; i < *count; i++) handles[i] = (void *)(uintptr_t)(HANDLE + i);
    else *count = it.devices;
    return 0;
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **handles) {
    if (handles) handles[0] = socket;
    *count = 1;
    return 0;
}

int amdsmi_get_gpu_asic_info(void *handle, Asic *asic) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    memset(asic, 0, sizeof *asic);
    snprintf(asic->market, 256, "%s", d->name);
    snprintf(asic->serial, 256, "0x%s", d->uuid + 4);
    asic->units = d->architecture;
    return 0;
}

int amdsmi_get_gpu_enumeration_info(void *handle, Enumeration *order) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    *order = (Enumeration){128, 0, d->hip + 1, d->hip, ""};
    snprintf(order->uuid, 256, "%s", d->uuid);
    return 0;
}

int amdsmi_get_energy_count(void *handle, uint64_t *count, float *resolution, uint64_t *stamp) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (d->energy_rc) return d->energy_rc;
    *count = energy_now(d, 1e3 / it.unit_uj);
    *resolution = (float)it.unit_uj;
    *stamp = 1;
    return 0;
}

int amdsmi_get_power_info(void *handle, PowerInfo *power) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (d->power_rc) return d->power_rc;
    memset(power, 0xff, sizeof *power);
    power->current = 0xffff;
    power->average = (uint32_t)(d->power_mw / 1000);
    return 0;
}

int amdsmi_get_power_cap_info(void *handle, uint32_t sensor, PowerCap *cap) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *cap = (PowerCap){d->limit_mw * 1000};
    return code ? code : d->state_rc;
}

int amdsmi_get_gpu_vram_usage(void *handle, Vram *vram) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *vram = (Vram){(uint32_t)(d->memory_total >> 20), (uint32_t)(d->memory_used >> 20)};
    return code ? code : d->state_rc;
}

int amdsmi_get_gpu_activity(void *handle, Engine *engine) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *engine = (Engine){d->busy, 0, 0xffff};
    return code ? code : d->state_rc;
}

int amdsmi_get_temp_metric(void *handle, uint32_t sensor, uint32_t metric, int64_t *degrees) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *degrees = d->degrees;
    return code ? code : d->state_rc;
}

int amdsmi_get_gpu_process_list(void *handle, uint32_t *count, ProcInfo *out) {
    Silicon it; Device *d;
    uint32_t found = 0, room = *count;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (d->users_rc) return d->users_rc;
    for (int i = 0; i < it.processes && found < room; i++) {
        Process *p = &it.process[i];
        if (&it.device[p->device] != d) continue;
        memset(&out[found], 0, sizeof out[found]);
        out[found].pid = p->pid;
        out[found].mem = out[found].memory.vram = p->memory;
        out[found].engine.gfx = p->ran_ns;
        out[found].held = p->held;
        found++;
    }
    *count = found;
    return 0;
}
