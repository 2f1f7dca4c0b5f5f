// Reward programs that do what the response tells them, for better and for worse.
#pragma once
#include "core/environment/make.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

namespace scripted {

using namespace hexad;
using namespace hexad::environment;
using Json = nlohmann::ordered_json;
using test_support::Log;

inline constexpr const char* kPython = R"PY(
import json, os, signal, subprocess, sys, time
def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def answer(r):
    what, _, rest = r["response"].partition(":")
    if what == "once":  # dies the first time
        if not os.path.exists(rest):
            open(rest, "w").close()
            os._exit(5)
        return {"id": r["id"], "reward": 1}
    if what == "echo": return {"id": r["id"], "reward": 1, "reason": json.dumps(r)}
    if what == "hang": time.sleep(1000)
    if what == "child":
        child = subprocess.Popen(["sleep", "1000"])
        with open(rest, "w") as f: f.write("%d %d" % (os.getpid(), child.pid))
        time.sleep(1000)
    # groups and sessions of their own, a child whose parent has ended, and one that goes on forking
    if what == "scatter":
        then, _, mark = rest.partition(":")
        sleeper = ["sh", "-c", "sleep 1000; exit", mark]
        subprocess.Popen(["timeout", "1000"] + sleeper)
        subprocess.Popen(sleeper, start_new_session=True)
        leave = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
        subprocess.run([sys.executable, "-c", leave] + sleeper)
        subprocess.Popen(["setsid", "sh", "-c", 'i=0; while [ $i -lt 300 ]; do setsid sh -c "sleep 1000; exit" "$0" & '
                          'i=$((i + 1)); sleep 0.01; done; sleep 1000', mark])
        if then == "hang": time.sleep(1000)
        if then == "die": os._exit(3)
    if what == "slow": time.sleep(float(rest))
    if what == "die":
        sys.stderr.write("cannot go on\n")
        sys.stderr.flush()
        os._exit(3)
    if what == "killed": os.kill(os.getpid(), signal.SIGSEGV)
    if what == "orphan":  # its pipes stay open
        subprocess.Popen(["sleep", "1000"], close_fds=False)
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "eof":
        os.close(1)
        time.sleep(1000)
    if what == "garbage": return "I think it is good"
    if what == "two": return "%s\n%s" % ((json.dumps({"id": r["id"], "reward": 1}),) * 2)
    if what == "late":  # a second line, when the first has been taken
        say(json.dumps({"id": r["id"], "reward": 1}))
        time.sleep(0.2)
        say("done")
        open(rest, "w").close()
        return None
    if what == "nan": return {"id": r["id"], "reward": float("nan")}
    if what == "large": return {"id": r["id"], "reward": 1e300}
    if what == "huge": say("x" * (8 << 20))
    if what == "endless":
        while True: sys.stdout.write("x" * 65536)
    if what == "deep": return "[" * 2000000 + "]" * 2000000
    if what == "wide": return json.dumps({"k%d" % i: 1 for i in range(200000)})
    if what == "bytes":
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.flush()
        return None
    if what == "invalid": return {"id": r["id"], "invalid": True, "reason": rest}
    if what == "null": return {"id": r["id"], "reward": None}
    if what == "other": return {"id": r["id"] + 1, "reward": 1}
    if what == "number": return 1
    if what == "nothing": return {"id": r["id"]}
    if what == "text": return {"id": r["id"], "reward": "1"}
    if what == "chatty":
        for i in range(1000): sys.stderr.write("line %d of a long story\n" % i)
        sys.stderr.write("y" * 300000)
        sys.stderr.flush()
    if what == "state": return {"id": r["id"], "reward": 1, "state": r.get("state", 0) + 1}
    if what == "say": return {"id": r["id"], "reward": 1, **json.loads(rest)}
    if what == "parts": return {"id": r["id"], "reward": 1, "components": json.loads(rest)}
    reward = {"good": 1, "true": True, "half": 0.5, "scatter": 1}.get(what, 0)
    return {"id": r["id"], "reward": reward}
if len(sys.argv) > 1: time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    request = json.loads(line)
    if isinstance(request, list):
        answers = [answer(r) for r in request]
        if any(r["response"] == "short" for r in request): answers.pop()
        say(json.dumps(answers))
    else:
        result = answer(request)
        if result is not None: say(result if isinstance(result, str) else json.dumps(result))
)PY";

// The program above, and environments that use it.
struct Script {
  toy::TempDir dir;
  toy::fs::path file = dir.write("reward.py", kPython);
  std::atomic<int> interrupted = 0;

  std::unique_ptr<Environment> make(Json section = Json::object()) {
    if (!section.contains("command")) section["command"] = {"python3", file.string()};
    Json defaults = {{"num_workers", 2}, {"timeout_s", 60}, {"startup_timeout_s", 60}};
    for (const auto& entry : defaults.items()) {
      if (!section.contains(entry.key())) section[entry.key()] = entry.value();
    }
    static plugin::Registry none({}, nullptr);
    return environment::make("mine", section, {none, {}, &interrupted});
  }
};

// Samples with these responses.
struct Responses {
  explicit Responses(std::vector<std::string> texts) : texts(std::move(texts)) {
    for (const std::string& text : this->texts) {
      Sample sample;
      sample.response = text;
      samples.push_back(sample);
    }
  }
  std::vector<std::string> texts;
  std::vector<Sample> samples;
};

inline Scores score(const Environment& environment, const std::vector<std::string>& texts, int64_t step = 3) {
  const Responses responses(texts);
  return environment.score(responses.samples, step);
}

}  // namespace scripted
