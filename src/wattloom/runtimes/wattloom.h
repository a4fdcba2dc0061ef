/* wattloom.h: a C or C++ program whose function stays warm between calls. One file, nothing to link.
 *
 *     #include "wattloom.h"
 *     static int handler(const unsigned char *in, size_t length, wattloom_reply *reply) {
 *         return wattloom_json(reply, "42", 2);
 *     }
 *     int main(int argc, char **argv) { return wattloom_serve(argc, argv, handler); }
 *
 * `in` is what the call was given: a JSON list of its arguments, or the bytes that were its only one; behind them is a zero
 * byte that is not counted. A handler answers with wattloom_json, wattloom_bytes or wattloom_error, and returns what they
 * return. Without Wattloom the program reads standard input, writes the answer to standard output and ends, so it can be
 * tried from a shell, and built as a WASI command.
 */
#ifndef WATTLOOM_H
#define WATTLOOM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATTLOOM_LOAD = 1, WATTLOOM_READY = 16, WATTLOOM_JSON = 17, WATTLOOM_BYTES = 18, WATTLOOM_RAISED = 19 };
enum { WATTLOOM_HEAD = 13 };

typedef struct {
    int kind;
    unsigned char *data;
    size_t length;
} wattloom_reply;

typedef int (*wattloom_handler)(const unsigned char *in, size_t length, wattloom_reply *reply);

/* -- answers */

static inline int wattloom_put(wattloom_reply *reply, int kind, const void *data, size_t length) {
    unsigned char *copy = (unsigned char *)malloc(length ? length : 1);
    if (copy == NULL) return 1;
    memcpy(copy, data, length);
    free(reply->data);
    reply->kind = kind;
    reply->data = copy;
    reply->length = length;
    return 0;
}

static inline int wattloom_json(wattloom_reply *reply, const char *text, size_t length) {
    return wattloom_put(reply, WATTLOOM_JSON, text, length);
}

static inline int wattloom_bytes(wattloom_reply *reply, const void *data, size_t length) {
    return wattloom_put(reply, WATTLOOM_BYTES, data, length);
}

static inline size_t wattloom_quote(char *to, const char *text) {
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    to[at++] = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            to[at++] = '\\';
            to[at++] = (char)c;
        } else if (c < 0x20) {
            memcpy(to + at, "\\u00", 4);
            to[at + 4] = digits[c >> 4];
            to[at + 5] = digits[c & 15];
            at += 6;
        } else {
            to[at++] = (char)c;
        }
    }
    to[at++] = '"';
    return at;
}

/* Text as JSON, with quotes: for answers that are a text. */
static inline int wattloom_text(wattloom_reply *reply, const char *text) {
    char *quoted = (char *)malloc(6 * strlen(text) + 2);
    int wrong = 1;
    if (quoted != NULL) wrong = wattloom_json(reply, quoted, wattloom_quote(quoted, text));
    free(quoted);
    return wrong;
}

static inline int wattloom_error(wattloom_reply *reply, const char *type, const char *message) {
    char *told = (char *)malloc(6 * (strlen(type) + strlen(message)) + 64);
    size_t at = 0;
    int wrong;
    if (told == NULL) return 1;
    memcpy(told, "{\"type\":", 8), at = 8;
    at += wattloom_quote(told + at, type);
    memcpy(told + at, ",\"message\":", 11), at += 11;
    at += wattloom_quote(told + at, message);
    told[at++] = '}';
    wrong = wattloom_put(reply, WATTLOOM_RAISED, told, at);
    free(told);
    return wrong;
}

/* -- reading and writing */

static inline int wattloom_read(int from, unsigned char *to, size_t length) {
    while (length) {
        ssize_t got = read(from, to, length > (1u << 30) ? (1u << 30) : length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        to += got, length -= (size_t)got;
    }
    return 0;
}

static inline int wattloom_write(int to, const unsigned char *from, size_t length) {
    while (length) {
        ssize_t sent = write(to, from, length > (1u << 30) ? (1u << 30) : length);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return -1;
        from += sent, length -= (size_t)sent;
    }
    return 0;
}

static inline void wattloom_make(wattloom_handler handler, const unsigned char *in, size_t length, wattloom_reply *reply) {
    int wrong = handler(in, length, reply);
    if (wrong && reply->kind != WATTLOOM_RAISED) wattloom_error(reply, "HandlerFailed", "the handler returned no answer");
    if (!wrong && reply->kind == 0) wattloom_json(reply, "null", 4);
    fflush(stdout);
    fflush(stderr);
}

/* One call: standard input to standard output. */
static inline int wattloom_once(wattloom_handler handler) {
    size_t room = 1 << 16, length = 0, got;
    unsigned char *in = (unsigned char *)malloc(room + 1);
    wattloom_reply reply = {0, NULL, 0};
    while (in != NULL && (got = fread(in + length, 1, room - length, stdin)) > 0) {
        length += got;
        if (length == room) in = (unsigned char *)realloc(in, (room *= 2) + 1);
    }
    if (in == NULL) return 1;
    in[length] = 0;
    wattloom_make(handler, in, length, &reply);
    if (reply.kind == WATTLOOM_RAISED) {
        fprintf(stderr, "%.*s\n", (int)reply.length, (const char *)reply.data);
        return 1;
    }
    fwrite(reply.data, 1, reply.length, stdout);
    return fflush(stdout) ? 1 : 0;
}

static inline int wattloom_serve(int argc, char **argv, wattloom_handler handler) {
    const char *from = getenv("WATTLOOM_REQUESTS"), *to = getenv("WATTLOOM_REPLIES");
    unsigned char head[WATTLOOM_HEAD];
    (void)argc, (void)argv;
    if (from == NULL || to == NULL) return wattloom_once(handler);
    int requests = atoi(from), replies = atoi(to);
    while (wattloom_read(requests, head, WATTLOOM_HEAD) == 0) {
        uint64_t length = 0;
        wattloom_reply reply = {0, NULL, 0};
        for (int i = 7; i >= 0; i--) length = length << 8 | head[5 + i];
        unsigned char *in = (unsigned char *)malloc((size_t)length + 1);
        if (in == NULL || wattloom_read(requests, in, (size_t)length)) return 1;
        in[length] = 0;
        if (head[0] == WATTLOOM_LOAD) reply.kind = WATTLOOM_READY;
        else wattloom_make(handler, in, (size_t)length, &reply);
        head[0] = (unsigned char)reply.kind;
        for (int i = 0; i < 8; i++) head[5 + i] = (unsigned char)((uint64_t)reply.length >> (8 * i));
        if (wattloom_write(replies, head, WATTLOOM_HEAD) || wattloom_write(replies, reply.data, reply.length)) return 1;
        free(reply.data);
        free(in);
    }
    return 0;
}

#endif
