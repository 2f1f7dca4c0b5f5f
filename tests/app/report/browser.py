#!/usr/bin/env python3
"""Opens pages in headless Chromium and says what it saw: browser.py FILE, a JSON list of visits.

A visit is {"page": URL, "width", "height", "dark": bool, "stages": [{"until": expression, "read": {name: expression}}]}
with expressions of JavaScript. After each stage, when its `until` has become true in the page, a line of JSON goes to
standard output: {"read": {name: value}, "console": [what the page wrote there, and its errors], "requests": [URLs
beside the page's own], "ms": since the visit began}. Speaks DevTools' protocol over a pair of pipes; every wait ends
after PATIENCE seconds."""
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 240


class Chromium:
    def __init__(self, profile):
        names = ["chromium", "chromium-browser", "google-chrome"]
        program = next((found for found in map(shutil.which, names) if found), None)
        if not program:
            sys.exit(f"none of {', '.join(names)} is on PATH: tools/setup.sh --tests installs chromium")
        ours_in, self.to = os.pipe()
        self.answers, ours_out = os.pipe()

        def hand():  # the pipes are descriptors 3 and 4 there; either may be in the other's place
            low, high = os.dup(ours_in), os.dup(ours_out)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            close_fds=False, preexec_fn=hand, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(ours_in)
        os.close(ours_out)
        self.bytes, self.next, self.events = b"", 0, []

    def receive(self, until):
        while b"\0" not in self.bytes:
            if not select.select([self.answers], [], [], max(0, until - time.monotonic()))[0]:
                sys.exit("Chromium did not answer in time")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                sys.exit("Chromium has ended")
            self.bytes += piece
        text, self.bytes = self.bytes.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.next:
                if "error" in answer:
                    raise Refused(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)


class Refused(Exception):
    pass


def evaluate(chromium, session, expression):
    answer = chromium.call("Runtime.evaluate", session, expression=expression, returnByValue=True, awaitPromise=True)
    if "exceptionDetails" in answer:
        sys.exit(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
    return answer["result"].get("value")


def is_true(chromium, session, expression):
    try:
        return evaluate(chromium, session, expression)
    except Refused:  # a page that loads itself anew has nothing to evaluate for a moment
        return False


def console_of(events):
    said = []
    for event in events:
        params = event.get("params", {})
        if event["method"] == "Runtime.consoleAPICalled":
            said.append(" ".join(str(each.get("value", each)) for each in params["args"]))
        elif event["method"] == "Runtime.exceptionThrown":
            said.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif event["method"] == "Log.entryAdded":
            said.append(params["entry"]["text"])
    return said


def visit(chromium, job):
    target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
    session = chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    chromium.events = []
    for domain in ["Page", "Runtime", "Log", "Network"]:
        chromium.call(f"{domain}.enable", session)
    chromium.call("Emulation.setDeviceMetricsOverride", session, width=job.get("width", 1200),
                  height=job.get("height", 6000), deviceScaleFactor=1, mobile=False)
    scheme = "dark" if job.get("dark") else "light"
    chromium.call("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
    began = time.monotonic()
    chromium.call("Page.navigate", session, url=job["page"])
    for stage in job["stages"]:
        until = time.monotonic() + PATIENCE
        while not is_true(chromium, session, f"document.readyState === 'complete' && !!({stage['until']})"):
            if time.monotonic() > until:
                sys.exit(f"{stage['until']} did not become true; {console_of(chromium.events)}")
            time.sleep(0.05)
        ms = round(1000 * (time.monotonic() - began))
        read = {name: evaluate(chromium, session, expression) for name, expression in stage["read"].items()}
        asked = [event["params"]["request"]["url"] for event in chromium.events
                 if event["method"] == "Network.requestWillBeSent"]
        requests = [url for url in asked if url != job["page"].split("#")[0]]
        print(json.dumps({"read": read, "console": console_of(chromium.events),
                          "requests": requests, "ms": ms}), flush=True)
    chromium.call("Target.closeTarget", targetId=target)


def main():
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chromium = Chromium(profile)
        try:
            for job in jobs:
                visit(chromium, job)
        except Refused as error:
            sys.exit(str(error))
        finally:
            chromium.process.kill()
            chromium.process.wait()


main()
