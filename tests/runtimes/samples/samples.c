/* What `wattloom.testing.runtime_conformance` asks for: which function, the first word says. Plain, warm, or as WASI. */
#ifndef __wasi__
#include <signal.h>
#endif
#include <time.h>

#include "wattloom.h"

static const char *which = "";
static long calls = 0;

static double used(void) {
#ifdef __wasi__
    static double turns = 0; /* it has no clock of the processor: a turn of the loop below takes about as long */
    return turns += 3e-5;
#else
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
#endif
}

static double number(const char *in, int position) {
    const char *at = in + 1;
    while (position-- > 0) at = strchr(at, ',') + 1;
    return strtod(at, NULL);
}

/* Between the brackets of a list of one; of a text, without its quotes. */
static char *only(const unsigned char *in, size_t length) {
    char *copy = (char *)malloc(length);
    memcpy(copy, in + 1, length - 2);
    copy[length - 2] = 0;
    return copy;
}

static char *text(const char *in) {
    const char *from = strchr(in, '"') + 1;
    size_t length = (size_t)(strchr(from, '"') - from);
    char *copy = (char *)malloc(length + 1);
    memcpy(copy, from, length);
    copy[length] = 0;
    return copy;
}

static int handler(const unsigned char *in, size_t length, wattloom_reply *reply) {
    const char *given = (const char *)in;
    char out[64];
    if (!strcmp(which, "echo")) {
        if (length > 1 && in[0] == '[' && in[length - 1] == ']') {
            char *value = only(in, length);
            int wrong = wattloom_json(reply, value, length - 2);
            free(value);
            return wrong;
        }
        return wattloom_bytes(reply, in, length);
    }
    if (!strcmp(which, "add")) {
        snprintf(out, sizeof out, "%g", number(given, 0) + number(given, 1));
        return wattloom_json(reply, out, strlen(out));
    }
    if (!strcmp(which, "fail")) {
        char *message = text(given);
        wattloom_error(reply, "BadLuck", message);
        free(message);
        return 1;
    }
    if (!strcmp(which, "say")) {
        char *line = text(given);
        for (long i = 0, n = (long)number(given, 1); i < n; i++) fprintf(stderr, "%s\n", line);
        free(line);
        return 0;
    }
    if (!strcmp(which, "grow")) {
        size_t n = (size_t)number(given, 0);
        char *grown = (char *)malloc(n + 2);
        memset(grown, 'x', n + 2);
        grown[0] = grown[n + 1] = '"';
        int wrong = wattloom_json(reply, grown, n + 2);
        free(grown);
        return wrong;
    }
    if (!strcmp(which, "spin")) {
        for (double end = used() + number(given, 0); used() < end;) {
            for (volatile long i = 0; i < 100000; i++) {
            }
        }
        return 0;
    }
    if (!strcmp(which, "nan")) return wattloom_json(reply, "NaN", 3);
    if (!strcmp(which, "count")) {
        snprintf(out, sizeof out, "%ld", calls++);
        return wattloom_json(reply, out, strlen(out));
    }
    if (!strcmp(which, "end")) exit((int)number(given, 0));
#ifndef __wasi__
    if (!strcmp(which, "die")) raise(SIGKILL);
    if (!strcmp(which, "crash")) raise(SIGSEGV);
#endif
    if (!strcmp(which, "arch")) {
#if defined __x86_64__
        return wattloom_text(reply, "x86_64");
#elif defined __aarch64__
        return wattloom_text(reply, "aarch64");
#else
        return wattloom_text(reply, "wasm");
#endif
    }
    wattloom_error(reply, "NoSuchFunction", which);
    return 1;
}

int main(int argc, char **argv) {
    which = argc > 1 ? argv[argc - 1] : "";
    return wattloom_serve(argc, argv, handler);
}
