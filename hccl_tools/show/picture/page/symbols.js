/* Marks: which devices and servers have which, and their symbols. */

const SYMBOLS = { cause: "⬢", error: "■", warning: "▲", consequence: "○", note: "◇", silent: "∅" };
const KINDS = Object.keys(raw.kinds);

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) {
    element.className = className;
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  return element;
}

function button(className, text) {
  const element = make("button", className, text);
  element.type = "button";
  return element;
}

const marks = { ofDevice: new Map(), ofServer: new Map(), inServer: new Map(), failed: new Map() };

function addTo(map, key, value) {
  if (map.has(key)) {
    map.get(key).push(value);
  } else {
    map.set(key, [value]);
  }
}

/* Remember the most important kind in each server, and how many of its devices are marked. */
function noteServer(server, kind, devices) {
  const before = marks.inServer.get(server) ?? { kind, devices: 0, kinds: [] };
  const kinds = KINDS.filter((one) => one === kind || before.kinds.includes(one));
  marks.inServer.set(server, { kind: kinds[0], devices: before.devices + devices, kinds });
}

for (const note of raw.notes) {
  for (const mark of note.marks) {
    for (const device of mark.rows) {
      addTo(marks.ofDevice, device, { note, mark });
      if (note.kind !== "silent") {
        noteServer(table.serverOf(device), note.kind, 1);
      }
    }
    for (const server of mark.servers) {
      addTo(marks.ofServer, server, { note, mark });
      noteServer(server, note.kind, 1);
    }
    for (const [one, other] of mark.peers) {
      for (const pair of [`${one} ${other}`, `${other} ${one}`]) {
        if (marks.failed.get(pair) !== "cause") {
          marks.failed.set(pair, note.kind);
        }
      }
    }
  }
}

/* The notes of a device or server, each once, the most important first. */
function notesOf(entries) {
  const notes = [...new Set((entries ?? []).map(({ note }) => note))];
  return notes.sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
}

function symbolText(note) {
  return `${SYMBOLS[note.kind]}${note.number || ""}`;
}

/* Add the symbols of notes to an element; words for a screen reader are in its label. */
function addBadges(element, notes) {
  for (const note of notes.slice(0, 2)) {
    const badge = make("span", `badge ${note.kind}`, symbolText(note));
    badge.setAttribute("aria-hidden", "true");
    element.append(badge);
  }
}

function markWords(entries) {
  return (entries ?? []).map(({ note, mark }) => {
    const where = mark.place ? ` (${mark.place})` : "";
    return `${note.label ? `${note.label}, ` : ""}${raw.kinds[note.kind]}: ${mark.sentence}${where}`;
  });
}
