/* Stands in for libnccl.so.2 where there is no GPU: memory of a device is the host's (fake_cuda.c), the first rank is
   this library's user, and the others of a communicator call fake_nccl_join and fake_nccl_receive, with its id. The
   process has to open it first; whoever asks for libnccl.so.2 then gets it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { kSuccess = 0, kUnhandled = 1, kInProgress = 7, kSlots = 256, kIdBytes = 128, kVersion = 22809 };

typedef struct {
  char bytes[kIdBytes];
} Id;

/* A communicator, and the message that is under way in it. */
typedef struct {
  Id id;
  int ranks, joined, taken, aborted;
  long sent; /* messages so far */
  const void* data;
  size_t bytes;
} Slot;

static Slot slots[kSlots];
static int count = 0;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Slot* find(const void* id) {
  for (int i = 0; i < count; ++i)
    if (memcmp(&slots[i].id, id, kIdBytes) == 0) return &slots[i];
  return NULL;
}

int ncclGetVersion(int* version) { return *version = kVersion, kSuccess; }
const char* ncclGetErrorString(int result) { return result == kSuccess ? "no error" : "unhandled cuda error"; }
int ncclGetUniqueId(void* id) {
  pthread_mutex_lock(&lock);
  Slot* slot = &slots[count % kSlots];
  memset(slot, 0, sizeof *slot);
  memset(slot->id.bytes, 0xC3, kIdBytes);
  memcpy(slot->id.bytes + 8, &count, sizeof count);
  *(Id*)id = slot->id;
  ++count;
  pthread_mutex_unlock(&lock);
  return kSuccess;
}

int ncclCommInitRankConfig(void** comm, int ranks, Id id, int rank, const void* config) {
  (void)config;
  pthread_mutex_lock(&lock);
  Slot* slot = find(&id);
  if (slot) slot->ranks = ranks;
  pthread_mutex_unlock(&lock);
  *comm = slot;
  return slot && rank == 0 ? kInProgress : kUnhandled;
}

/* Until the others have joined, and have taken the message. */
int ncclCommGetAsyncError(void* comm, int* state) {
  Slot* slot = comm;
  pthread_mutex_lock(&lock);
  const int others = slot->ranks - 1;
  *state = slot->joined == others && (slot->sent == 0 || slot->taken == others) ? kSuccess : kInProgress;
  pthread_mutex_unlock(&lock);
  return kSuccess;
}

int ncclBroadcast(const void* from, void* to, size_t bytes, int type, int root, void* comm, void* stream) {
  (void)stream;
  Slot* slot = comm;
  if (from != to || type != 1 || root != 0) return kUnhandled;
  pthread_mutex_lock(&lock);
  slot->data = from, slot->bytes = bytes, slot->taken = 0, ++slot->sent;
  pthread_mutex_unlock(&lock);
  return kInProgress;
}

int ncclAllReduce(const void* from, void* to, size_t n, int type, int op, void* comm, void* stream) {
  return (void)from, (void)to, (void)n, (void)type, (void)op, (void)comm, (void)stream, kUnhandled;
}

int ncclCommAbort(void* comm) {
  pthread_mutex_lock(&lock);
  ((Slot*)comm)->aborted = 1;
  pthread_mutex_unlock(&lock);
  return kSuccess;
}

/* Another rank. 0: there is no such communicator. */
int fake_nccl_join(const void* id) {
  pthread_mutex_lock(&lock);
  Slot* slot = find(id);
  if (slot) ++slot->joined;
  pthread_mutex_unlock(&lock);
  return slot != NULL;
}

/* Of the message after `seen` others: 1 when it was copied, 0 while it has not come, -1 when it will not. */
int fake_nccl_receive(const void* id, long seen, void* data, size_t bytes) {
  int result = 0;
  pthread_mutex_lock(&lock);
  Slot* slot = find(id);
  if (!slot || slot->aborted) result = -1;
  if (result == 0 && slot->sent == seen + 1) {
    result = slot->bytes == bytes ? 1 : -1;
    if (result == 1) memcpy(data, slot->data, bytes), ++slot->taken;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
