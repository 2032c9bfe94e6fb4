// An HTTP server that is not the limit: one thread, epoll, keep-alive. Answers every request with 201
// and a small JSON body, after a fixed delay. A request line and headers, then Content-Length bytes;
// pipelined requests are answered one after the other. Loopback only.
//
//   stub PORT DELAY_MS        writes "ready" when it listens; ends with its standard input
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kConnections = 4096, kRequest = 16384, kAnswers = 1 << 16 };

struct connection {
    unsigned life;  // tells an answer that is due from one for whoever had this descriptor before
    size_t used;
    char data[kRequest];
};
struct answer {
    long long due_us;
    int descriptor;
    unsigned life;
};

static struct connection *connections[kConnections];
static struct answer answers[kAnswers];  // the delay is the same for all: first in, first due
static unsigned head, tail;

static const char kAnswer[] =
    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"id\":\"T-1\"} ";

static void die(const char *what) {
    perror(what);
    exit(1);
}

static long long now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static void reply(int descriptor) {
    // So small that it always fits; a client that is gone is noticed at its next read.
    if (send(descriptor, kAnswer, sizeof kAnswer - 1, MSG_NOSIGNAL) < 0 && errno == EAGAIN) die("send");
}

static void later(int descriptor, long long due_us) {
    if (tail - head == kAnswers) die("too many answers are due");
    answers[tail++ % kAnswers] =
        (struct answer){due_us, descriptor, connections[descriptor]->life};
}

// How many bytes the first request in the buffer takes; 0: it is not complete.
static size_t request_size(const struct connection *c) {
    const char *end = memmem(c->data, c->used, "\r\n\r\n", 4);
    if (end == NULL) return 0;
    size_t body = 0;
    for (const char *line = c->data; line < end;) {
        if (strncasecmp(line, "content-length:", 15) == 0) body = strtoul(line + 15, NULL, 10);
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL) break;
        line = next + 1;
    }
    size_t size = (size_t)(end - c->data) + 4 + body;
    return c->used >= size ? size : 0;
}

static void serve(int descriptor, long long delay_us) {
    struct connection *c = connections[descriptor];
    ssize_t got = recv(descriptor, c->data + c->used, kRequest - c->used, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        ++c->life;
        close(descriptor);
        return;
    }
    c->used += (size_t)got;
    for (size_t size; (size = request_size(c)) > 0;) {
        c->used -= size;
        memmove(c->data, c->data + size, c->used);
        if (delay_us == 0) {
            reply(descriptor);
        } else {
            later(descriptor, now_us() + delay_us);
        }
    }
    if (c->used == kRequest) die("a request is too large");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const long long delay_us = atoll(argv[2]) * 1000;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 2048) < 0) die("listen");
    int poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    event.data.fd = STDIN_FILENO;
    epoll_ctl(poller, EPOLL_CTL_ADD, STDIN_FILENO, &event);
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec wait = {0, 0}, *until = NULL;
        if (head != tail) {
            long long left = answers[head % kAnswers].due_us - now_us();
            if (left > 0) wait = (struct timespec){left / 1000000, left % 1000000 * 1000};
            until = &wait;
        }
        struct epoll_event events[256];
        int count = epoll_pwait2(poller, events, 256, until, NULL);
        for (int i = 0; i < count; ++i) {
            int descriptor = events[i].data.fd;
            if (descriptor == STDIN_FILENO) return 0;
            if (descriptor != listener) {
                serve(descriptor, delay_us);
                continue;
            }
            int client;
            while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                if (client >= kConnections) die("too many connections");
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                if (connections[client] == NULL) connections[client] = calloc(1, sizeof **connections);
                connections[client]->used = 0;
                event.events = EPOLLIN;
                event.data.fd = client;
                epoll_ctl(poller, EPOLL_CTL_ADD, client, &event);
            }
        }
        for (long long now = now_us(); head != tail && answers[head % kAnswers].due_us <= now; ++head) {
            const struct answer *due = &answers[head % kAnswers];
            if (connections[due->descriptor]->life == due->life) reply(due->descriptor);
        }
    }
}
