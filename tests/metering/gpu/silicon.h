/* The silicon behind both stand-ins for a driver's library: read anew at every call from the file that the variable
   GPU_SILICON names. No file: the driver is not loaded. See silicon.py, which writes it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#define MOST 32

typedef struct {
    char uuid[80], name[80];
    int handle_rc, energy_rc, power_rc, state_rc, users_rc, busy_rc;
    unsigned long long energy, power_mw, limit_mw, memory_used, memory_total;
    unsigned busy, degrees, architecture, instances, hip;
    double since;
} Device;

typedef struct {
    int device, instance;
    unsigned pid, busy, held;
    unsigned long long memory, stamp, ran_ns;
} Process;

typedef struct {
    int driver_rc, major, devices, processes;
    double unit_uj, hang_s;
    char maker[16];
    Device device[MOST];
    Process process[MOST];
} Silicon;

static void one_line(Silicon *it, char *line) {
    Device *d = &it->device[it->devices];
    Process *p = &it->process[it->processes];
    sscanf(line, "driver %15s %d %d %lf %lf", it->maker, &it->driver_rc, &it->major, &it->unit_uj, &it->hang_s);
    if (it->devices < MOST && sscanf(line, "device %79s %79s %d %d %d %d %d %d %llu %llu %llu %llu %llu %u %u %u %u %u %lf",
            d->uuid, d->name, &d->handle_rc, &d->energy_rc, &d->power_rc, &d->state_rc, &d->users_rc, &d->busy_rc,
            &d->energy, &d->power_mw, &d->limit_mw, &d->memory_used, &d->memory_total, &d->busy, &d->degrees,
            &d->architecture, &d->instances, &d->hip, &d->since) == 19) {
        for (char *c = d->name; *c; c++) if (*c == '_') *c = ' ';
        it->devices++;
    }
    if (it->processes < MOST && sscanf(line, "process %d %d %u %u %u %llu %llu %llu", &p->device, &p->instance, &p->pid,
            &p->busy, &p->held, &p->memory, &p->stamp, &p->ran_ns) == 8)
        it->processes++;
}

/* MAKER: whose library this is. To the others' there is no such hardware. */
static int silicon(Silicon *it, int not_loaded) {
    const char *path = getenv("GPU_SILICON");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    memset(it, 0, sizeof *it);
    if (!file) return not_loaded;
    while (fgets(line, sizeof line, file)) one_line(it, line);
    fclose(file);
    if (strcmp(it->maker, MAKER)) return not_loaded;
    if (it->hang_s > 0.0) usleep((useconds_t)(it->hang_s * 1e6));
    return it->driver_rc;
}

/* What kernels have drawn so far, in mJ: the stand-in of the CUDA library adds to the file beside the silicon's. */
static unsigned long long work_mj(unsigned long long more) {
    char path[4096], text[32] = "";
    const char *base = getenv("GPU_SILICON");
    unsigned long long total = 0;
    snprintf(path, sizeof path, "%s.work", base ? base : "");
    int file = open(path, more ? O_RDWR | O_CREAT : O_RDONLY, 0644);
    if (file < 0) return 0;
    if (pread(file, text, 20, 0) == 20) total = strtoull(text, NULL, 10);
    /* In place and of one length, so that nobody reads half of it. */
    if (more && snprintf(text, sizeof text, "%020llu", total + more) == 20 && pwrite(file, text, 20, 0) != 20) abort();
    close(file);
    return total + more;
}

/* Steps of the energy counter. A device with a beginning counts by itself, at its power, as the clock goes on. */
static unsigned long long energy_now(const Device *d, double steps_per_mj) {
    struct timespec now;
    if (d->since <= 0.0) return d->energy;
    clock_gettime(CLOCK_REALTIME, &now);
    double mj = d->power_mw * (now.tv_sec + now.tv_nsec * 1e-9 - d->since) + work_mj(0);
    return d->energy + (unsigned long long)(mj * steps_per_mj);
}
