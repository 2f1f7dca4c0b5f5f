/* A language model small enough for a plugin in C: logits(next | last, before last) = A[last] + B[before last].
 * It can learn the quickstart's puzzle (the answer depends on the letter two places back). */
#include <dirent.h>
#include <hexad/abi.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { V = 12, WEIGHTS = 2 * V * V };

/* log-probs of every token that may follow ids[0 .. n). */
static inline void toy_logprobs(const float* w, const int64_t* ids, int64_t n, double temperature, double* out) {
  double largest = -INFINITY, sum = 0;
  for (int v = 0; v < V; v++) {
    out[v] = 0;
    if (n >= 1) out[v] += w[ids[n - 1] * V + v];
    if (n >= 2) out[v] += w[V * V + ids[n - 2] * V + v];
    out[v] /= temperature;
    if (out[v] > largest) largest = out[v];
  }
  for (int v = 0; v < V; v++) sum += exp(out[v] - largest);
  for (int v = 0; v < V; v++) out[v] -= largest + log(sum);
}

/* What goes wrong, where and how: plugin_config.fault = "train@3:kill". Step 0: at every step. */
typedef struct toy_fault {
  char where[32], how[32];
  long step;
} toy_fault;

static inline hexad_code toy_read_fault(const hexad_host* host, hexad_call* call, const hexad_config* config,
                                        toy_fault* fault) {
  const char* text = "";
  memset(fault, 0, sizeof *fault);
  const hexad_code code = host->config_str(call, config, "fault", &text);
  if (code == HEXAD_OK && *text && sscanf(text, "%31[a-z_]@%ld:%31s", fault->where, &fault->step, fault->how) != 3) {
    return host->set_error(call, HEXAD_INVALID_ARGUMENT, "fault: wanted WHERE@STEP:HOW", UINT64_MAX);
  }
  return code;
}

/* plugin_config.trace, at most 4095 bytes of it. */
static inline hexad_code toy_read_trace(const hexad_host* host, hexad_call* call, const hexad_config* config,
                                        char trace[4096]) {
  const char* text = "";
  const hexad_code code = host->config_str(call, config, "trace", &text);
  snprintf(trace, 4096, "%s", text);
  return code;
}

static inline int toy_fails(const toy_fault* fault, const hexad_host* host, hexad_call* call, const char* where) {
  return strcmp(fault->where, where) == 0 && (fault->step == 0 || fault->step == host->step(call));
}

/* The parent of `pid`. */
static inline pid_t toy_parent_of(pid_t pid) {
  char path[64], state;
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE* stat = fopen(path, "r");
  if (stat && fscanf(stat, "%*d (%*[^)]) %c %d", &state, &parent) != 2) parent = 0;
  if (stat) fclose(stat);
  return parent;
}

/* Kills every process with `text` in its command line. */
static inline void toy_kill_all_with(const char* text) {
  DIR* processes = opendir("/proc");
  for (struct dirent* entry; processes && (entry = readdir(processes));) {
    char path[64], command[8192] = "";
    snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
    FILE* file = atoi(entry->d_name) > 1 ? fopen(path, "r") : NULL;
    if (!file) continue;
    const size_t size = fread(command, 1, sizeof command - 1, file);
    fclose(file);
    for (size_t i = 0; i < size; i++) command[i] = command[i] ? command[i] : ' ';
    if (strstr(command, text)) kill(atoi(entry->d_name), SIGKILL);
  }
  if (processes) closedir(processes);
}

static inline hexad_code toy_act(const toy_fault* fault, const hexad_host* host, hexad_call* call, const char* where) {
  if (!toy_fails(fault, host, call, where)) return HEXAD_OK;
  if (strcmp(fault->how, "kill") == 0) raise(SIGKILL);
  if (strcmp(fault->how, "kill_controller") == 0) { /* a spawner stands between */
    const pid_t controller = toy_parent_of(getppid());
    if (controller > 1) kill(controller, SIGKILL);
    sleep(60);
  }
  const char* rewards = getenv("HEXAD_TOY_REWARDS"); /* the path of their script */
  if (strcmp(fault->how, "kill_rewards") == 0 && rewards) toy_kill_all_with(rewards);
  if (strcmp(fault->how, "stop") == 0) raise(SIGSTOP);
  if (strcmp(fault->how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(fault->how, "exit") == 0) _exit(7);
  if (strcmp(fault->how, "error") == 0)
    return host->set_error(call, HEXAD_INTERNAL, "the toy was told to fail", UINT64_MAX);
  if (strcmp(fault->how, "memory") == 0)
    return host->set_error(call, HEXAD_RESOURCE_EXHAUSTED, "CUDA out of memory. Tried to allocate 2 GiB", UINT64_MAX);
  if (strcmp(fault->how, "claims") == 0) { /* what the engine tells itself */
    host->metric(call, "gen_kl_error", 0.25, 1, HEXAD_REDUCE_SUM);
    return host->metric(call, "loss", 777, 1, HEXAD_REDUCE_SUM);
  }
  if (strcmp(fault->how, "late_lost") == 0) sleep(2); /* when the peer is surely gone */
  if (strcmp(fault->how, "lost") == 0 || strcmp(fault->how, "late_lost") == 0)
    return host->set_error(call, HEXAD_UNAVAILABLE, "a peer is missing", UINT64_MAX);
  if (strcmp(fault->how, "late_kill") == 0) {
    usleep(200 * 1000);
    raise(SIGKILL);
  }
  if (strcmp(fault->how, "slow") == 0) usleep(300 * 1000);
  while (strcmp(fault->how, "hang") == 0) sleep(1); /* its heartbeats go on */
  return HEXAD_OK;
}
