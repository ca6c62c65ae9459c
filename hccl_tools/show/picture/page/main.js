/* Start the page: fill it, and connect search, notes and buttons. */

const query = document.getElementById("query");
const results = document.getElementById("results");
const found = document.getElementById("found");
/* Unfold makes at most so many devices at once. */
const MOST_UNFOLDED = 2048;
/* The servers of a table that opens unfolded even if one has to scroll. */
const SMALL = 8;
/* So many super pods or ranges of servers, too. */
const FEW = 4;
/* Further notes are found by search, and on their devices. */
const MOST_NOTES = 200;

function showView(name) {
  document.getElementById("boxes").hidden = name !== "boxes";
  linksPart.hidden = name !== "links";
  document.getElementById("view-boxes").setAttribute("aria-pressed", `${name === "boxes"}`);
  document.getElementById("view-links").setAttribute("aria-pressed", `${name === "links"}`);
  if (name === "links") {
    centreLinks(current);
    drawLinks();
  }
}

function goTo(hit) {
  showView("boxes");
  if (hit.kind === "note") {
    const [mark] = hit.note.marks;
    if (mark.rows.length) {
      go(revealDevice(mark.rows[0]));
    } else if (mark.servers.length) {
      go(reveal(mark.servers[0]));
    }
  } else {
    go(hit.kind === "device" ? revealDevice(hit.index) : reveal(hit.index));
  }
}

function showResults() {
  const { hits, total } = search(query.value);
  results.replaceChildren(
    ...hits.map((hit) => {
      const item = make("li");
      const link = button("", resultText(hit));
      link.addEventListener("click", () => goTo(hit));
      item.append(link);
      return item;
    }),
  );
  results.hidden = hits.length === 0;
  found.textContent = query.value.trim() ? `${total.toLocaleString("en")} found` : "";
  return hits;
}

query.addEventListener("input", showResults);
query.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    const [first] = showResults();
    if (first) {
      goTo(first);
    }
  }
});

function fillNotes() {
  document.getElementById("notes-part").hidden = raw.notes.length === 0;
  for (const note of raw.notes.slice(0, MOST_NOTES)) {
    const some = note.omitted ? `, the first ${(note.count - note.omitted).toLocaleString("en")} are marked` : "";
    const others = note.count > 1 ? ` (${counted(note.count, "time")}${some})` : "";
    const words = note.kind === "silent" ? `${counted(note.marks[0].rows.length, "rank")}: ${note.marks[0].sentence}` : markWords([{ note, mark: note.marks[0] }])[0];
    const link = button(note.kind, `${symbolText(note)} ${words}${others}`);
    link.addEventListener("click", () => goTo({ kind: "note", note }));
    const item = make("li");
    item.append(link);
    document.getElementById("notes").append(item);
  }
}

/* Unfold the next level of boxes, as far as that is not too much. */
function unfoldMore() {
  let devices = 0;
  for (const box of [...boxes.values()]) {
    if (box.kind !== "device" && !isOpen(box) && (!box.around || isOpen(box.around))) {
      devices += box.kind === "server" ? table.devicesOf(box.servers[0]).length : 0;
      if (devices > MOST_UNFOLDED) {
        return;
      }
      unfold(box);
    }
  }
}

function foldAll() {
  for (const box of boxes.values()) {
    if (box.kind !== "device") {
      fold(box);
    }
  }
  go(boxes.values().next().value);
}

/* Whether the picture is within its pane, which is as high as the window has room for. */
function fitsPane() {
  const top = part.getBoundingClientRect().top + part.scrollTop;
  const room = Math.max(innerHeight - top, innerHeight / 2);
  return picture.getBoundingClientRect().bottom - part.getBoundingClientRect().top + part.scrollTop <= room;
}

function foldedAtTop() {
  const isFolded = (box) => box.kind !== "device" && !isOpen(box) && (!box.around || isOpen(box.around));
  return [...boxes.values()].filter(isFolded);
}

/* Unfold level by level as far as the pane has room, at least down to the servers of a small table. */
function unfoldToFit() {
  for (let level = foldedAtTop(); level.length; level = foldedAtTop()) {
    const children = level.reduce((sum, box) => sum + childCount(box), 0);
    const isSmall = table.servers.length <= SMALL || (level.length <= FEW && level[0].kind !== "server");
    if (children > MOST_UNFOLDED) {
      return;
    }
    level.forEach(unfold);
    if (!isSmall && !fitsPane()) {
      level.forEach(fold);
      return;
    }
  }
}

/* Letters as large as the whole of a small table has room for, at most twice their size. */
function zoomToFit() {
  zoomTo(STEPS.indexOf(2));
  while (step > STEPS.indexOf(1) && !(fitsPane() && part.scrollWidth <= part.clientWidth)) {
    zoomOut();
  }
}

/* Unfold what fits, and what has a cause or an error. */
function unfoldFirst() {
  unfoldToFit();
  zoomToFit();
  if (table.servers.length <= SMALL) {
    return;
  }
  for (const note of raw.notes.filter(({ kind }) => kind === "cause" || kind === "error").slice(0, 4)) {
    note.marks[0].rows.slice(0, 4).forEach(revealDevice);
    note.marks[0].peers.slice(0, 4).flat().forEach(revealDevice);
    note.marks[0].servers.slice(0, 4).forEach((server) => unfold(reveal(server)));
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}

document.getElementById("file").textContent = raw.file;
document.getElementById("facts").textContent = raw.facts;
document.getElementById("view-boxes").addEventListener("click", () => showView("boxes"));
document.getElementById("view-links").addEventListener("click", () => showView("links"));
document.getElementById("unfold").addEventListener("click", unfoldMore);
document.getElementById("fold").addEventListener("click", foldAll);
document.getElementById("theme").addEventListener("click", () =>
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
);
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
linksPart.tabIndex = 0;
document.getElementById("side").tabIndex = 0; // it may scroll
fillOverview();
fillPicture();
fillNotes();
fillSigns();
fillLegend();
unfoldFirst();
select(boxes.values().next().value);
