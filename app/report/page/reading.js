// "Reading the metrics" (docs/metrics.md) in the page: its questions as links above the curves, and beside each chart
// the way to what its metric says.
const reading = find("reading");
const readingRows =
  new Map([...reading.querySelectorAll("tr")].map(row => [row.querySelector("code")?.textContent, row]));

function openReading(at) {
  reading.open = true;
  at.scrollIntoView({block: at === reading ? "start" : "center"});
  for (const marked of reading.querySelectorAll(".marked")) marked.classList.remove("marked");
  at.classList.add("marked");
}

// A button for a metric that is explained, as a list of one; of another none.
function explained(name) {
  const row = readingRows.get(name);
  if (!row) return [];
  const button = node("button", {title: "what it says, and how it should be", "aria-label": `what ${name} says`}, "?");
  button.onclick = () => openReading(row);
  return [button];
}

const mostQuestions = 3;

function offerQuestions() {
  const titles = [...reading.querySelectorAll("h3")];
  const offer = (text, at) => {
    const button = node("button", {}, text);
    button.onclick = () => openReading(at);
    find("questions").append(button);
  };
  for (const title of titles.slice(0, mostQuestions)) offer(title.textContent, title);
  offer(`${titles.length - mostQuestions} more questions`, reading);
  if (location.hash === "#reading") openReading(reading);
  addEventListener("hashchange", () => location.hash === "#reading" && openReading(reading));
}
