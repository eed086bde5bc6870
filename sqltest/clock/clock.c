// Sets the wall clock of a database server ahead by as many seconds as a file says. It is preloaded into all processes of the server,
// which see a step at once.
//
// libfaketime does not serve: it reads its file with malloc, also in a signal handler that interrupted malloc, which ended servers of
// PostgreSQL, and its waits made MySQL take minutes to start.
//
// The file CLOCK_FILE is mapped. Its first eight bytes are the seconds, times 256, plus 1. Anything else means 0.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// glibc 2.34 gave these functions new versions. The first ones work in a container with an older glibc, too.
#if __GLIBC_PREREQ(2, 34)
#ifdef __x86_64__
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5\n.symver dlvsym, dlvsym@GLIBC_2.2.5");
#elif defined __aarch64__
__asm__(".symver dlsym, dlsym@GLIBC_2.17\n.symver dlvsym, dlvsym@GLIBC_2.17");
#endif
#endif

static volatile long long *said;
static int (*clock_gettime_of_libc)(clockid_t, struct timespec *);
static int (*timedwait_of_libc)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*clockwait_of_libc)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);

// dlsym returns the oldest version of a symbol, which for condition variables has another layout.
static void *newest(const char *name) {
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); // amd64
	return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void map(void) {
	timedwait_of_libc = newest("pthread_cond_timedwait");
	clockwait_of_libc = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	clock_gettime_of_libc = dlsym(RTLD_NEXT, "clock_gettime");
	const char *name = getenv("CLOCK_FILE");
	int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return;
	void *page = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
	if (page != MAP_FAILED)
		said = page;
	close(file);
}

static time_t ahead(void) {
	long long v = said ? *said : 0;
	return (v & 255) == 1 ? v >> 8 : 0;
}

int clock_gettime(clockid_t id, struct timespec *to) {
	int failed = clock_gettime_of_libc ? clock_gettime_of_libc(id, to) : (int)syscall(SYS_clock_gettime, id, to);
	if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		to->tv_sec += ahead();
	return failed;
}

int gettimeofday(struct timeval *to, void *zone) {
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}

// A deadline on the wall clock goes to the kernel by its own clock. One on the monotonic clock is below the year 2001.
static struct timespec real(const struct timespec *deadline) {
	struct timespec at = *deadline;
	if (at.tv_sec > 1000000000)
		at.tv_sec -= ahead();
	return at;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
	struct timespec at = real(deadline);
	if (!timedwait_of_libc)
		map();
	return timedwait_of_libc(cond, mutex, &at);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t id, const struct timespec *deadline) {
	struct timespec at = real(deadline);
	if (!clockwait_of_libc)
		map();
	return clockwait_of_libc(cond, mutex, id, &at);
}
