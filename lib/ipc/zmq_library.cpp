// The functions of libzmq that cppzmq calls; each hands its call on to the library, which the first call opens.
//
// libzmq brings thirteen more libraries (Kerberos, PGM, NORM among them). Loading them takes a millisecond, a third of
// the time of `hexad --version`; and of all commands only those open a socket that start ranks.
#include <dlfcn.h>
#include <zmq.h>

#include "lib/base/error.hpp"

namespace hexad::ipc {
namespace {

constexpr const char* kLibrary = "libzmq.so.5";  // the ABI of libzmq since 4.2

void* symbol(const char* name) {
  static void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  void* const found = library ? ::dlsym(library, name) : nullptr;
  if (!found) {
    const char* const why = ::dlerror();
    fail(ErrorKind::worker, "{} of {} cannot be used: {}. Ranks talk through libzmq: install it (Debian: libzmq5)",
         name, kLibrary, why ? why : "it could not be opened");
  }
  return found;
}

}  // namespace
}  // namespace hexad::ipc

#define HEXAD_HAND_ON(result, name, parameters, arguments)                                     \
  extern "C" result name parameters {                                                          \
    static const auto function = reinterpret_cast<decltype(&name)>(hexad::ipc::symbol(#name)); \
    return function arguments;                                                                 \
  }

HEXAD_HAND_ON(int, zmq_errno, (), ())
HEXAD_HAND_ON(const char*, zmq_strerror, (int code), (code))
HEXAD_HAND_ON(int, zmq_curve_keypair, (char* open, char* secret), (open, secret))
HEXAD_HAND_ON(void*, zmq_ctx_new, (), ())
HEXAD_HAND_ON(int, zmq_ctx_set, (void* context, int option, int value), (context, option, value))
HEXAD_HAND_ON(int, zmq_ctx_term, (void* context), (context))
HEXAD_HAND_ON(int, zmq_ctx_shutdown, (void* context), (context))
HEXAD_HAND_ON(void*, zmq_socket, (void* context, int type), (context, type))
HEXAD_HAND_ON(int, zmq_close, (void* socket), (socket))
HEXAD_HAND_ON(int, zmq_bind, (void* socket, const char* address), (socket, address))
HEXAD_HAND_ON(int, zmq_connect, (void* socket, const char* address), (socket, address))
HEXAD_HAND_ON(int, zmq_setsockopt, (void* socket, int option, const void* value, size_t size),
              (socket, option, value, size))
HEXAD_HAND_ON(int, zmq_getsockopt, (void* socket, int option, void* value, size_t* size), (socket, option, value, size))
HEXAD_HAND_ON(int, zmq_socket_monitor, (void* socket, const char* address, int events), (socket, address, events))
HEXAD_HAND_ON(int, zmq_send, (void* socket, const void* bytes, size_t size, int flags), (socket, bytes, size, flags))
HEXAD_HAND_ON(int, zmq_poll, (zmq_pollitem_t * items, int count, long timeout_ms), (items, count, timeout_ms))
HEXAD_HAND_ON(int, zmq_msg_init, (zmq_msg_t * message), (message))
HEXAD_HAND_ON(int, zmq_msg_init_data, (zmq_msg_t * message, void* bytes, size_t size, zmq_free_fn* drop, void* hint),
              (message, bytes, size, drop, hint))
HEXAD_HAND_ON(int, zmq_msg_close, (zmq_msg_t * message), (message))
HEXAD_HAND_ON(void*, zmq_msg_data, (zmq_msg_t * message), (message))
HEXAD_HAND_ON(size_t, zmq_msg_size, (const zmq_msg_t* message), (message))
HEXAD_HAND_ON(int, zmq_msg_more, (const zmq_msg_t* message), (message))
HEXAD_HAND_ON(int, zmq_msg_send, (zmq_msg_t * message, void* socket, int flags), (message, socket, flags))
HEXAD_HAND_ON(int, zmq_msg_recv, (zmq_msg_t * message, void* socket, int flags), (message, socket, flags))

#undef HEXAD_HAND_ON
