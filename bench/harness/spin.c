/*
 * A client that never sleeps: spin PORT CONNECTIONS REQUESTS PATH
 *
 * Over loopback, the kernel charges the server for waking up a client that waits. A client on a network costs the server
 * nothing of the kind, so the clients of these figures must not wait.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static char request[1024];

static int ask(int socket) {
  return send(socket, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request);
}

static int open_connection(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) return -1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* Fails for an answer that is not a 200, or does not come in one piece. */
int main(int count, char **args) {
  if (count != 5) return 2;
  int connections = atoi(args[2]), poll = epoll_create1(0);
  long left = atol(args[3]), asked = 0;
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", args[4]);
  for (int i = 0; i < connections && asked < left; i++, asked++) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = open_connection(atoi(args[1]))};
    if (event.data.fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event) != 0 || !ask(event.data.fd)) return 1;
  }
  struct epoll_event ready[64];
  char answer[16384];
  long total = left;
  while (left > 0) {
    int n = epoll_wait(poll, ready, 64, 0);
    for (int i = 0; i < n; i++) {
      ssize_t length = recv(ready[i].data.fd, answer, sizeof answer, 0);
      if (length < 16 || memcmp(answer, "HTTP/1.1 200", 12) != 0) return 1;
      left--;
      if (asked < total) {
        asked++;
        if (!ask(ready[i].data.fd)) return 1;
      }
    }
  }
  return 0;
}
