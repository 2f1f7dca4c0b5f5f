/* Before libcurl (LD_PRELOAD): calls that fail. HEXAD_BROKEN_CURL=sometimes: every third of each function, as if memory
 * were short; never: nothing is ever done, and no call says so; unresolved: the name server of judge.test never
 * answers. */
#define _GNU_SOURCE
#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int broken(const char* how) {
  const char* asked = getenv("HEXAD_BROKEN_CURL");
  return asked && strcmp(asked, how) == 0;
}

static int third(int* calls) { return ++*calls % 3 == 0 && broken("sometimes"); }

/* The library's own; a plugin's libraries are in no scope of this one. */
static void* real(const char* name) { return dlsym(dlopen("libcurl.so.4", RTLD_LAZY | RTLD_NOLOAD), name); }

CURL* curl_easy_init(void) {
  static int calls;
  return third(&calls) ? NULL : ((CURL * (*)(void)) real("curl_easy_init"))();
}

CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  static int calls;
  return third(&calls) ? CURLM_OUT_OF_MEMORY
                       : ((CURLMcode(*)(CURLM*, CURL*))real("curl_multi_add_handle"))(multi, easy);
}

CURLMcode curl_multi_perform(CURLM* multi, int* running) {
  static int calls;
  if (broken("never")) return CURLM_OK;
  return third(&calls) ? CURLM_OUT_OF_MEMORY : ((CURLMcode(*)(CURLM*, int*))real("curl_multi_perform"))(multi, running);
}

CURLMcode curl_multi_poll(CURLM* multi, struct curl_waitfd fds[], unsigned count, int ms, int* ready) {
  static int calls;
  if (broken("never") || third(&calls)) return CURLM_INTERNAL_ERROR;
  return ((CURLMcode(*)(CURLM*, struct curl_waitfd*, unsigned, int, int*))real("curl_multi_poll"))(multi, fds, count,
                                                                                                   ms, ready);
}

CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
  return ((CURLMsg * (*)(CURLM*, int*)) real("curl_multi_info_read"))(multi, left);
}

int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
  typedef int (*Real)(const char*, const char*, const struct addrinfo*, struct addrinfo**);
  if (node && strcmp(node, "judge.test") == 0 && broken("unresolved")) {
    sleep(600);
    return EAI_AGAIN;
  }
  return ((Real)dlsym(RTLD_NEXT, "getaddrinfo"))(node, service, hints, found);
}
