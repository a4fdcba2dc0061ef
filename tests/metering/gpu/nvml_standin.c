/* A stand-in for libnvidia-ml.so.1 with the symbols and structures of nvml.h that we use. Only the silicon is made up. */
#define MAKER "nvidia"
#include "silicon.h"

#define UNINITIALIZED 1
#define INVALID_ARGUMENT 2
#define NOT_FOUND 6
#define INSUFFICIENT_SIZE 7
#define DRIVER_NOT_LOADED 9
#define HANDLE 0x1000
#define INSTANCE 0x100000

typedef struct { unsigned int pid; unsigned long long memory; unsigned int gpu_instance, compute_instance; } ProcessInfo;
typedef struct { unsigned int pid; unsigned long long stamp; unsigned int sm, mem, enc, dec; } UtilizationSample;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Utilization;

static int opened = 0;

static int device(void *handle, Silicon *it, Device **found) {
    uintptr_t number = (uintptr_t)handle;
    int code = silicon(it, DRIVER_NOT_LOADED);
    if (!opened) return UNINITIALIZED;
    if (code) return code;
    number = number >= INSTANCE ? (number - INSTANCE) / 16 : number - HANDLE;
    if (number >= (uintptr_t)it->devices) return INVALID_ARGUMENT;
    *found = &it->device[number];
    return (*found)->handle_rc;
}

static int instance(void *handle) {
    uintptr_t number = (uintptr_t)handle;
    return number >= INSTANCE ? (int)((number - INSTANCE) % 16) : -1;
}

int nvmlInitWithFlags(unsigned int flags) {
    Silicon it;
    int code = silicon(&it, DRIVER_NOT_LOADED);
    if (!code) opened++;
    return code;
}

int nvmlShutdown(void) {
    if (!opened) return UNINITIALIZED;
    opened--;
    return 0;
}

const char *nvmlErrorString(int code) { return "an error of the stand-in"; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    Silicon it;
    int code = silicon(&it, DRIVER_NOT_LOADED);
    if (!opened) return UNINITIALIZED;
    *count = it.devices;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    Silicon it; Device *d;
    *handle = (void *)(uintptr_t)(HANDLE + index);
    return device(*handle, &it, &d);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (instance(handle) >= 0) snprintf(uuid, length, "MIG-%d-%s", instance(handle), d->uuid + 4);
    else snprintf(uuid, length, "%s", d->uuid);
    return 0;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int length) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) snprintf(name, length, "%s", d->name);
    return code;
}

/* One figure of a device, or its own error. */
#define FIGURE(NAME, TYPE, RC, VALUE) \
    int NAME(void *handle, TYPE *value) { \
        Silicon it; Device *d; \
        int code = device(handle, &it, &d); \
        if (code) return code; \
        if (RC) return RC; \
        *value = VALUE; \
        return 0; \
    }

FIGURE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, d->energy_rc, energy_now(d, 1.0))
FIGURE(nvmlDeviceGetPowerUsage, unsigned int, d->power_rc, (unsigned int)d->power_mw)
FIGURE(nvmlDeviceGetEnforcedPowerLimit, unsigned int, d->state_rc, (unsigned int)d->limit_mw)
FIGURE(nvmlDeviceGetArchitecture, unsigned int, 0, d->architecture)
FIGURE(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0, 7)
FIGURE(nvmlDeviceGetMemoryInfo, Memory, d->state_rc,
       ((Memory){d->memory_total, d->memory_total - d->memory_used, d->memory_used}))
FIGURE(nvmlDeviceGetUtilizationRates, Utilization, d->state_rc, ((Utilization){d->busy, d->busy / 2}))

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *degrees) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *degrees = d->degrees;
    return code ? code : d->state_rc;
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (!code) *current = *pending = d->instances > 0;
    return code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int index, void **part) {
    Silicon it; Device *d;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (index >= d->instances) return NOT_FOUND;
    *part = (void *)(uintptr_t)(INSTANCE + ((uintptr_t)handle - HANDLE) * 16 + index);
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, ProcessInfo *out) {
    Silicon it; Device *d;
    unsigned int room = *count, found = 0;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (d->users_rc) return d->users_rc;
    for (int i = 0; i < it.processes; i++) {
        Process *p = &it.process[i];
        if (&it.device[p->device] != d || (instance(handle) >= 0 && p->instance != instance(handle)) || p->memory == 0) continue;
        if (out && found < room) out[found] = (ProcessInfo){p->pid, p->memory, (unsigned)p->instance, 0};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : 0;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *count, ProcessInfo *out) {
    Silicon it; Device *d;
    *count = 0;
    return device(handle, &it, &d);
}

int nvmlDeviceGetProcessUtilization(void *handle, UtilizationSample *out, unsigned int *count, unsigned long long seen) {
    Silicon it; Device *d;
    unsigned int room = out ? *count : 0, found = 0;
    int code = device(handle, &it, &d);
    if (code) return code;
    if (d->busy_rc) return d->busy_rc;
    for (int i = 0; i < it.processes; i++) {
        Process *p = &it.process[i];
        if (&it.device[p->device] != d || p->stamp <= seen || p->busy == 0) continue;
        if (found < room) out[found] = (UtilizationSample){p->pid, p->stamp, p->busy, 0, 0, 0};
        found++;
    }
    *count = found;
    if (!found) return NOT_FOUND;
    return found > room ? INSUFFICIENT_SIZE : 0;
}
