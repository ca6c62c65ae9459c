/* The nested boxes. A box makes what is in it when it is unfolded for the first time. */

const PER_CHUNK = 64;
/* Devices of a row, the most first; as many as the pane has room for. */
const PER_ROW = [8, 4, 2, 1];
/* The level of the heading of a box, for screen readers. */
const HEADINGS = { pod: "h3", chunk: "h4", server: "h5" };
const MOST_DEVICES = 256;
/* Of a longer address, such as an EID, the end is shown. */
const MOST_LETTERS = 15;

const picture = document.getElementById("picture");
/* Boxes by key: pod 0, chunk 0 64, server 5, device 40. */
const boxes = new Map();

/* A box that can be folded. `fill` adds its contents to its body. */
function foldable(kind, key, name, sub, servers, fill) {
  const element = make("div", `box ${kind}`);
  const head = button("head");
  head.append(make("span", "name", name), make("span", "sub", sub));
  head.setAttribute("aria-expanded", "false");
  const body = make("div", "body");
  body.hidden = true;
  const heading = make(HEADINGS[kind], "");
  heading.append(head);
  element.append(heading, body);
  const box = { kind, key, element, head, body, servers, fill, isFilled: false, around: null };
  head.dataset.box = key;
  head.tabIndex = -1;
  boxes.set(key, box);
  addServerMarks(box);
  return box;
}

function addServerMarks(box) {
  const marked = box.servers.filter((server) => marks.inServer.has(server));
  if (!marked.length) {
    return;
  }
  const kinds = marked.map((server) => marks.inServer.get(server).kind);
  const worst = KINDS.find((kind) => kinds.includes(kind));
  const text = box.kind === "server" ? raw.kinds[worst] : `${raw.kinds[worst]}, ${counted(marked.length, "server")} marked`;
  box.head.append(make("span", `badge ${worst}`, `${SYMBOLS[worst]} ${text}`));
  if (box.kind !== "server" || marks.ofServer.has(box.servers[0])) {
    box.element.classList.add(worst);
  }
}

/* The boxes that unfolding makes. */
function childCount({ kind, servers }) {
  if (kind === "server") {
    return Math.min(table.devicesOf(servers[0]).length, MOST_DEVICES);
  }
  return servers.length <= PER_CHUNK ? servers.length : Math.ceil(servers.length / PER_CHUNK);
}

function isOpen(box) {
  return !box.body.hidden;
}

function unfold(box) {
  if (!box.isFilled) {
    box.fill(box);
    box.isFilled = true;
  }
  show(box, true);
}

function fold(box) {
  show(box, false);
}

function show(box, isShown) {
  box.body.hidden = !isShown;
  box.element.classList.toggle("open", isShown);
  box.head.setAttribute("aria-expanded", `${isShown}`);
}

function addBoxes(parent, around, made) {
  const row = make("div", "row");
  for (const box of made) {
    box.around = around;
    row.append(box.element);
  }
  parent.append(row);
}

function addBetween(parent, servers, what, homeOf) {
  const words = table.between(servers, homeOf);
  if (words) {
    parent.append(make("p", "between", `between ${what}: ${words}`));
  }
}

/* Fill a box with servers, in parts of 64 if there are many. */
function fillServers(parent, around, servers) {
  if (servers.length <= PER_CHUNK) {
    addBoxes(parent, around, servers.map(serverBox));
    return;
  }
  const chunks = [];
  for (let start = 0; start < servers.length; start += PER_CHUNK) {
    chunks.push(chunkBox(servers.slice(start, start + PER_CHUNK)));
  }
  addBoxes(parent, around, chunks);
}

function chunkBox(own) {
  const name = `${table.servers[own[0]]} to ${table.servers[own[own.length - 1]]}`;
  const sub = `${counted(own.length, "server")}, ${ranksOf(own)}`;
  return foldable("chunk", `chunk ${own[0]}`, name, sub, own, (box) => fillServers(box.body, box, own));
}

function podBox(pod, place) {
  const name = pod.name === null ? "in no super pod" : `super pod ${pod.name}`;
  const sub = `${counted(pod.servers.length, "server")}, ${ranksOf(pod.servers)}`;
  return foldable("pod", `pod ${place}`, name, sub, pod.servers, (box) => {
    addBetween(box.body, pod.servers, "its servers", (server) => server);
    fillServers(box.body, box, pod.servers);
  });
}

function serverBox(server) {
  return foldable("server", `server ${server}`, table.servers[server], ranksOf([server]), [server], (box) =>
    fillDevices(box, server),
  );
}

function fillDevices(box, server) {
  const devices = table.devicesOf(server);
  const shown = devices.slice(0, MOST_DEVICES);
  const groups = make("div", "groups");
  groups.setAttribute("role", "group");
  groups.setAttribute("aria-label", `devices of ${table.servers[server]}`);
  const groupOf = (device) => Math.floor((table.id(device) ?? -1) / raw.groupSize);
  for (let start = 0; start < shown.length; ) {
    let end = raw.groupSize === null ? shown.length : start + 1;
    while (end < shown.length && groupOf(shown[end]) === groupOf(shown[start])) {
      end += 1;
    }
    groups.append(groupBox(box, server, shown.slice(start, end)));
    start = end;
  }
  box.body.append(groups);
  if (devices.length > shown.length) {
    box.body.append(make("p", "between", `${devices.length - shown.length} more devices`));
  }
}

function groupBox(box, server, devices) {
  const group = make("div", raw.groupSize === null ? "group plain" : "group");
  if (raw.groupSize !== null) {
    const low = Math.floor((table.id(devices[0]) ?? -1) / raw.groupSize) * raw.groupSize;
    group.append(make("div", "title", low < 0 ? "in no group" : `group ${low}-${low + raw.groupSize - 1}`));
  }
  const perRow = Math.min(devices.length, devicesPerRow());
  for (let start = 0; start < devices.length; start += perRow) {
    const row = devices.slice(start, start + perRow);
    const grid = make("div", "devices");
    grid.style.gridTemplateColumns = `repeat(${perRow}, auto)`;
    row.forEach((device) => grid.append(deviceBox(box, device)));
    addLinkBars(grid, server, row);
    group.append(grid);
  }
  return group;
}

/* The devices that fit side by side in the pane, where the letters have their normal size. */
function devicesPerRow() {
  const letter = parseFloat(getComputedStyle(document.body).fontSize);
  const room = document.getElementById("boxes").clientWidth / letter - 5;
  return PER_ROW.find((number) => number * (deviceWidth + 0.3) <= room) ?? 1;
}

/* Below the devices: a bar for each set that a link joins, over the part of it in this row. */
function addLinkBars(grid, server, row) {
  const inner = raw.links.inner[shared(raw.links.innerOf, server)];
  const first = row[0] - table.starts[server];
  let line = 1;
  let kind = null;
  for (const [word, places] of inner ? inner.joined : []) {
    const own = places.filter((place) => place >= first && place < first + row.length);
    if (own.length) {
      line += word === kind ? 0 : 1;
      kind = word;
      const name = raw.links.words[word][0];
      const bar = make("div", `bar-of ${name}`, name);
      bar.style.gridColumn = `${own[0] - first + 1} / ${own[own.length - 1] - first + 2}`;
      bar.style.gridRow = `${line}`;
      grid.append(bar);
    }
  }
}

function deviceBox(around, device) {
  const entries = marks.ofDevice.get(device);
  const notes = notesOf(entries);
  const element = button(`npu ${notes.length ? notes[0].kind : ""}`);
  const [whole] = raw.addresses[device].split(" ");
  const address = whole.length > MOST_LETTERS ? `…${whole.slice(1 - MOST_LETTERS)}` : whole;
  if (raw.notes.length) {
    const badges = make("span", "badges");
    addBadges(badges, notes);
    element.append(badges);
  }
  element.append(make("span", "rank", table.rankName(device)));
  element.append(make("span", "id", table.idName(device)), make("span", "address", address));
  const words = [`rank ${table.rankName(device)}`, table.idName(device), whole, ...markWords(entries)];
  element.setAttribute("aria-label", words.filter(Boolean).join(", "));
  element.title = table.lines === null ? raw.file : `${raw.file}:${table.lines[device]}`;
  element.tabIndex = -1;
  element.dataset.box = `device ${device}`;
  boxes.set(`device ${device}`, { kind: "device", key: `device ${device}`, element, head: element, device, around });
  return element;
}

/* Unfold what is around a server and return its box. */
function reveal(server) {
  const pod = table.podOf(server);
  const outer = boxes.get(`pod ${raw.pods.length && pod === -1 ? raw.pods.length : pod}`);
  if (outer) {
    unfold(outer);
  }
  for (const box of boxes.values()) {
    if (box.kind === "chunk" && box.servers.includes(server)) {
      unfold(box);
    }
  }
  return boxes.get(`server ${server}`);
}

function revealDevice(device) {
  const box = reveal(table.serverOf(device));
  unfold(box);
  return boxes.get(`device ${device}`) ?? box;
}

/* Of a device, in letters of the picture. */
let deviceWidth = 0;

/* All devices are as wide as the longest first address needs, up to a limit; all heads of servers are equal. */
function setWidths() {
  let most = 0;
  for (const text of raw.addresses) {
    const end = text.indexOf(" ");
    most = Math.max(most, end === -1 ? text.length : end);
  }
  const letters = Math.min(most, MOST_LETTERS);
  deviceWidth = Math.max(letters * 0.45 + 0.9, 3.6);
  picture.style.setProperty("--npu-width", `${deviceWidth}em`);
  const longest = table.servers.reduce((size, name) => Math.max(size, name.length), 0);
  const ranks = `ranks ${table.size - 1}-${table.size - 1}`.length;
  picture.style.setProperty("--head-width", `${Math.min(longest * 0.6 + ranks * 0.46 + 3.1, 36)}em`);
}

function fillPicture() {
  const everything = table.servers.map((_, index) => index);
  setWidths();
  if (raw.pods.length) {
    addBetween(picture, everything, "super pods", table.podOf);
    addBoxes(picture, null, table.pods.map(podBox));
  } else {
    addBetween(picture, everything, "servers", (server) => server);
    fillServers(picture, null, everything);
  }
}
