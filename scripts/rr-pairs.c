// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pairs that pass a byte to and fro over loopback, as netperf's TCP_RR and UDP_RR do. A daemon
 * forks the servers; the main process starts the clients, as a shell would. The byte carries the
 * sender's CPU, so that each round tells how far apart the two sides are.
 *
 *   rr-pairs tcp|udp WARMUP_MS MEASURE_MS CPUS_A_NODE CPUS_A_CLUSTER PAIRS...
 *
 * prints a line for each number of pairs. docs/mechanisms/cluster.md has what came out in guests:
 *
 *   cc -O2 -static -o rr-pairs scripts/rr-pairs.c
 *   perch lab run -m FILE --kernel FILE --timed -- ./rr-pairs udp 60 80 8 4 8 16
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_PAIRS 4096
#define GAP_US 500 /* between two starts */
#define FIRST_PORT 10000

enum {
	SAME_CPU,
	SAME_CLUSTER,
	SAME_NODE,
	APART,
	DISTANCES
};

struct pair {
	unsigned long rounds, by_distance[DISTANCES];
	pid_t server;
};

static struct pair *pairs;
static unsigned long from_ns, to_ns;
static int tcp, node_cpus, cluster_cpus;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static struct sockaddr_in address(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0), one = 1;

	if (fd < 0)
		die("socket");
	if (tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	ioctl(fd, SIOCGIFFLAGS, &r);
	r.ifr_flags |= IFF_UP;
	if (ioctl(fd, SIOCSIFFLAGS, &r))
		die("lo");
	close(fd);
}

static int distance(int a, int b)
{
	if (a == b)
		return SAME_CPU;
	if (a / cluster_cpus == b / cluster_cpus)
		return SAME_CLUSTER;
	return a / node_cpus == b / node_cpus ? SAME_NODE : APART;
}

static void server(struct pair *p, int fd)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	unsigned char cpu;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	p->server = getpid();
	if (tcp) {
		fd = accept(fd, NULL, NULL);
		if (fd < 0)
			die("accept");
	}
	for (;;) {
		if (recvfrom(fd, &cpu, 1, 0, (void *)&from, &len) != 1)
			exit(0);
		cpu = sched_getcpu();
		if (sendto(fd, &cpu, 1, 0, tcp ? NULL : (void *)&from, tcp ? 0 : len) != 1)
			exit(0);
	}
}

static void client(struct pair *p, int port)
{
	struct sockaddr_in to = address(port);
	int fd = new_socket();
	unsigned char cpu = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (connect(fd, (void *)&to, sizeof(to)))
		die("connect");
	for (;;) {
		unsigned long t;

		if (send(fd, &cpu, 1, 0) != 1 || recv(fd, &cpu, 1, 0) != 1)
			die("round");
		t = now_ns();
		if (t >= to_ns)
			break;
		if (t >= from_ns) {
			p->rounds++;
			p->by_distance[distance(sched_getcpu(), cpu)]++;
		}
	}
	pause();
}

static void run(int n, int port, unsigned long warmup_ns, unsigned long measure_ns)
{
	unsigned long rounds = 0, by_distance[DISTANCES] = {0};
	pid_t daemon, *clients = calloc(n, sizeof(*clients));
	int ready[2], *fds = calloc(n, sizeof(*fds)), i, d;
	char go = 1;

	memset(pairs, 0, n * sizeof(*pairs));
	from_ns = now_ns() + (n + 4) * 2000ul * GAP_US + warmup_ns;
	to_ns = from_ns + measure_ns;
	if (!clients || !fds || pipe(ready))
		die("setup");
	for (i = 0; i < n; i++) {
		struct sockaddr_in a = address(port + i);

		fds[i] = new_socket();
		if (bind(fds[i], (void *)&a, sizeof(a)) || (tcp && listen(fds[i], 1)))
			die("bind");
	}
	daemon = fork();
	if (!daemon) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < n && read(ready[0], &go, 1) == 1; i++)
			if (!fork())
				server(&pairs[i], fds[i]);
		for (;;)
			pause();
	}
	for (i = 0; i < n; i++) {
		if (write(ready[1], &go, 1) != 1)
			die("daemon");
		usleep(GAP_US / 2);
		clients[i] = fork();
		if (!clients[i])
			client(&pairs[i], port + i);
		usleep(GAP_US / 2);
	}
	if (now_ns() > from_ns)
		printf("the pairs began late: ask for a longer warm-up\n");
	while (now_ns() < to_ns + 5000000)
		usleep(5000);
	for (i = 0; i < n; i++) {
		rounds += pairs[i].rounds;
		for (d = 0; d < DISTANCES; d++)
			by_distance[d] += pairs[i].by_distance[d];
		kill(clients[i], SIGKILL);
		waitpid(clients[i], NULL, 0);
		kill(pairs[i].server, SIGKILL);
		close(fds[i]);
	}
	kill(daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	if (!rounds) {
		printf("%s, %d pairs: no round in the time\n", tcp ? "tcp" : "udp", n);
		exit(1);
	}
	printf("%s, %d pairs: %.0f rounds a second and pair; same CPU %.1f %%, cluster %.1f %%, node %.1f %%, apart %.1f %%\n",
	       tcp ? "tcp" : "udp", n, rounds * 1e9 / measure_ns / n,
	       100.0 * by_distance[SAME_CPU] / rounds, 100.0 * by_distance[SAME_CLUSTER] / rounds,
	       100.0 * by_distance[SAME_NODE] / rounds, 100.0 * by_distance[APART] / rounds);
	free(clients);
	free(fds);
}

int main(int argc, char **argv)
{
	int i, port = FIRST_PORT;

	if (argc < 7) {
		fprintf(stderr,
			"rr-pairs tcp|udp WARMUP_MS MEASURE_MS CPUS_A_NODE CPUS_A_CLUSTER PAIRS...\n");
		return 2;
	}
	if (sysconf(_SC_NPROCESSORS_CONF) > 256) {
		fprintf(stderr, "rr-pairs: a byte holds the numbers of 256 CPUs, and no more\n");
		return 1;
	}
	tcp = !strcmp(argv[1], "tcp");
	node_cpus = atoi(argv[4]);
	cluster_cpus = atoi(argv[5]);
	loopback_up();
	pairs = mmap(NULL, MOST_PAIRS * sizeof(*pairs), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pairs == MAP_FAILED)
		die("mmap");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 6; i < argc; i++) {
		int n = atoi(argv[i]);

		if (n < 1 || n > MOST_PAIRS || node_cpus < 1 || cluster_cpus < 1) {
			fprintf(stderr, "rr-pairs: %s pairs: expected 1 to %d\n", argv[i],
				MOST_PAIRS);
			return 2;
		}
		run(n, port, atof(argv[2]) * 1e6, atof(argv[3]) * 1e6);
		port += n;
	}
	return 0;
}
