/* Preloaded into a program, this copies the process where the program asks for it, by access() of
   "/copy/of/this/process", without the program's libraries noticing: the copy has the original's
   process id, and no handler of the program's is called. access() gives the original 0 and the copy
   -1. access() of "/end/of/this/process" ends it at once. LABELDP_COPY says how to copy:

   snapshot     the process's state is copied; both see the same process id, as after the restore of
                a checkpoint (getpid is replaced: this needs no privilege)
   namespace    the original is process 1 of its namespace, and the copy of one within
   reused       the copy gets the original's process id once that has ended */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* how(void) {
  const char* set = getenv("LABELDP_COPY");
  return set ? set : "";
}

pid_t getpid(void) {
  return strcmp(how(), "snapshot") ? (pid_t)syscall(SYS_getpid) : 12345;
}

/* Memory that a fork would leave out, and a checkpoint does not: the heap of JavaScript. */
int madvise(void* address, size_t size, int advice) {
  return advice == MADV_DONTFORK ? 0 : (int)syscall(SYS_madvise, address, size, advice);
}

static pid_t copy(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

static void set_next(pid_t next) {
  int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
  if (file < 0 || dprintf(file, "%d", (int)next - 1) < 0) _exit(0);
  close(file);
}

/* In a child of the original, which draws nothing itself: returns in a child of its own, the copy.
   Where that is not permitted there is no copy. The kernel may hold the number of a process for a
   moment after its end: a copy that got another number ends, and the next one is made. */
static void become_copy(pid_t original) {
  enum { OTHER_NUMBER = 75, TRIES = 2000 };
  int reused = !strcmp(how(), "reused"), status = 0;
  if (!strcmp(how(), "namespace") && unshare(CLONE_NEWPID)) _exit(0);
  while (reused && !kill(original, 0)) usleep(1000);
  for (int tries = 0; tries < TRIES; tries++) {
    if (reused) set_next(original);
    pid_t child = copy();
    if (!child && reused && getpid() != original) _exit(OTHER_NUMBER);
    if (!child) return;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != OTHER_NUMBER) _exit(0);
    usleep(1000);
  }
  _exit(0);
}

int access(const char* path, int mode) {
  if (!strcmp(path, "/end/of/this/process")) _exit(0);
  if (strcmp(path, "/copy/of/this/process")) {
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
  }
  pid_t original = getpid(), child = copy();
  if (child > 0) {
    if (strcmp(how(), "reused")) waitpid(child, NULL, 0);
    return 0;
  }
  if (!child && strcmp(how(), "snapshot")) become_copy(original);
  errno = ENOENT;
  return child ? 0 : -1;
}
