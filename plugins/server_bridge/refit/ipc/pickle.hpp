// Python's pickles, as far as engines in Python take weights by them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad::bridge {

// Appends opcodes of protocol 3. Nothing is memoised: what occurs twice is written twice. Source: CPython's pickle.py.
class Pickle {
 public:
  Pickle() : text_("\x80\x03") {}

  Pickle& integer(int64_t value);
  Pickle& boolean(bool value) { return op(value ? '\x88' : '\x89'); }
  Pickle& string(std::string_view value);
  Pickle& bytes(std::string_view value);  // 255 at most
  Pickle& global(const char* module, const char* name);

  Pickle& dict() { return op('}'); }
  Pickle& list() { return op(']'); }
  Pickle& mark() { return op('('); }
  Pickle& tuple() { return op('t'); }              // of what is above the mark
  Pickle& tuple_of_one() { return op('\x85'); }    // of what is on top
  Pickle& set_item() { return op('s'); }           // of the dict below a key and its value
  Pickle& append_all() { return op('e'); }         // to the list below the mark, what is above it
  Pickle& call() { return op('R'); }               // what is below a tuple, with it
  Pickle& object() { return op(')').op('\x81'); }  // of the class on top, its __init__ left out
  Pickle& set_state() { return op('b'); }          // of the object below a dict, from it

  std::string end() { return op('.').text_; }

 private:
  Pickle& op(char code) {
    text_ += code;
    return *this;
  }
  template <class T>
  Pickle& raw(T value);

  std::string text_;
};

}  // namespace hexad::bridge
