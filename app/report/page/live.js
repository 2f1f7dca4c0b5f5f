// A run that goes on: its numbers are asked for again and again, and the page drawn anew where they are others. Only
// the page that `hexad report --serve` answers with has this script.
const told = new Map();  // when each path was last answered, or that it was not
function tell(path, answered) {
  told.set(path, answered ? new Date() : null);
  const times = [...told.values()];
  find("live").textContent = times.includes(null) ? "no answer: has hexad report --serve ended?" :
                                                    `live, ${new Date(Math.min(...times)).toLocaleTimeString()}`;
}

// The answer may cost the server much of a processor, and a training wants them: it rests ten times as long.
async function follow(path, shortest, take) {
  const patience = 120000;
  for (let known = "";;) {
    const began = performance.now();
    try {
      const answer =
        await fetch(path, {headers: known ? {"If-None-Match": known} : {}, signal: AbortSignal.timeout(patience)});
      if (answer.status === 200) {
        const fresh = await answer.json();
        known = answer.headers.get("ETag");
        if (areOthers(fresh.runs)) return location.reload();
        take(fresh.runs);
      } else if (answer.status !== 304) {
        throw new Error(answer.statusText);
      }
      tell(path, true);
    } catch {
      known = "";
      tell(path, false);
    }
    await new Promise(rested => setTimeout(rested, Math.max(shortest, 10 * (performance.now() - began))));
  }
}

// What was drawn, and what a person chose, belongs to the folders that the page began with.
const areOthers = fresh =>
  fresh.length !== runs.length || fresh.some((run, i) => run.directory !== runs[i].directory);
const keysOf = run => Object.keys(run.series).join();
follow("metrics.json", 2000, fresh => {
  const same = fresh.every((run, i) => keysOf(run) === keysOf(runs[i]));
  fresh.forEach((run, i) => Object.assign(runs[i], run));
  drawHead();
  if (same)
    redraw();
  else
    drawCurves();
  columns("time", drawTime);
});
follow("samples.json", 5000, fresh => {
  fresh.forEach((run, i) => Object.assign(runs[i], run));
  drawShown();
});
